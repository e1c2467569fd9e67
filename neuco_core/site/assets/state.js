// What the reader has chosen, kept in the address after "#", so that a link shows the same view. One tab is open.
"use strict";
const neuco = (() => {
  const data = JSON.parse(document.getElementById("board-data").textContent);
  const panels = [...document.querySelectorAll("#tabs a")].map((link) => link.hash.slice(1));
  // A tab may have tabs of its own, each for a part of it.
  const strips = [...document.querySelectorAll(".tabs.inner")], parts = strips.flatMap((strip) => [...strip.children].map((link) => link.hash.slice(1)));
  const shows = data.cellColumns.map((column) => column.key);
  const defaults = { tab: panels[0], sort: "rank", dir: "", q: "", show: shows[0] || "", base: "", pick: "", more: "", lap: "", off: "", out: "", far: "", part: "", est: "" };
  // A filter for each column of counts: max-dim=64 shows embeddings of at most 64 numbers.
  const limits = data.limits.map((column) => "max-" + column.key);
  // A filter for each fact of few words: is-pretraining=nothing.
  const choices = data.choices.map((fact) => "is-" + fact.key);
  limits.concat(choices).forEach((name) => { defaults[name] = ""; });
  const listeners = [], details = Object.create(null), waiting = Object.create(null);
  let state = read();

  function list(text) { return text ? text.split(",") : []; }
  function read() {
    const view = { ...defaults };
    new URLSearchParams(location.hash.slice(1)).forEach((value, key) => { if (Object.hasOwn(defaults, key)) { view[key] = value; } });
    const anchor = location.hash.slice(1);
    view.tab = panelOf(anchor) || view.tab;
    if (parts.includes(anchor)) { view.part = anchor; }
    return mend(view);
  }
  // A link may come from an older board or from a stranger: what is not known here is as if it were not said.
  function mend(view) {
    const keep = (key, allowed) => { if (!allowed.includes(view[key])) { view[key] = defaults[key]; } };
    const some = (key, allowed) => { view[key] = list(view[key]).filter((id) => allowed.includes(id)).join(","); };
    const ids = data.rows.map((row) => row.id), tasks = data.tasks.map((task) => task.id);
    keep("tab", panels);
    keep("show", shows);
    keep("base", ["hide"]);
    keep("lap", ["hide"]);
    keep("more", ["show"]);
    keep("far", ["show"]);
    // Estimates stand in the cells of tasks: where these are folded away, so are they.
    keep("est", data.axes.length && !view.far ? [] : ["show"]);
    keep("part", parts);
    choices.forEach((choice, i) => keep(choice, data.rows.flatMap((row) => words(row, i))));
    limits.forEach((limit, i) => keep(limit, data.rows.map((row) => String(row.values[data.limits[i].key])).filter(Number)));
    some("pick", ids);
    some("out", data.anew ? data.anew.methods : []);
    some("off", tasks);
    const off = list(view.off), sorted = view.sort;
    const open = tasks.filter((id) => !off.includes(id)).map((id) => "task:" + id);
    keep("sort", ["method", ...data.columns.map((column) => column.key), ...open]);
    keep("dir", view.sort === sorted ? ["asc", "desc"] : []);
    return view;
  }
  // The words of a fact; what nobody has said is unknown, and a reader may ask for that, too.
  function words(row, i) { return (row.values[data.choices[i].key] || "unknown").split(", "); }
  // "#history" and the like lead to a place on the page: the tab that holds it is opened.
  function panelOf(id) {
    const node = id && document.getElementById(id);
    return panels.find((panel) => node && document.getElementById(panel).contains(node));
  }
  function chosen() { return Object.keys(defaults).filter((key) => state[key] !== defaults[key]); }
  function write() {
    const keys = chosen(), params = new URLSearchParams(keys.map((key) => [key, state[key]]));
    const hash = keys.join() === "tab" ? state.tab : params.toString();
    history.replaceState(null, "", hash ? "#" + hash : location.pathname + location.search);
  }
  function tell() {
    document.querySelectorAll("#tabs a").forEach((link) => {
      const open = link.hash.slice(1) === state.tab;
      document.getElementById(link.hash.slice(1)).toggleAttribute("data-open", open);
      if (open) { link.setAttribute("aria-current", "true"); } else { link.removeAttribute("aria-current"); }
    });
    strips.forEach((strip) => {
      const links = [...strip.children], chosen = links.find((link) => link.hash.slice(1) === state.part) || links[0];
      links.forEach((link) => {
        document.getElementById(link.hash.slice(1)).toggleAttribute("data-open", link === chosen);
        if (link === chosen) { link.setAttribute("aria-current", "true"); } else { link.removeAttribute("aria-current"); }
      });
      strip.scrollLeft = chosen.offsetLeft - strip.offsetLeft - 40; // it may be beyond the edge of a phone
    });
    listeners.forEach((listener) => listener(state));
    if (state.tab !== panels[0]) {
      const tabs = document.getElementById("tabs"), link = tabs.querySelector("[aria-current]");
      tabs.scrollLeft = link.offsetLeft - tabs.offsetLeft - (tabs.clientWidth - link.offsetWidth) / 2; // a phone has no room for all
    }
  }
  function set(changes) { mend(Object.assign(state, changes)); write(); tell(); }

  window.addEventListener("hashchange", () => {
    const hash = location.hash.slice(1), params = new URLSearchParams(hash), anchor = document.getElementById(hash);
    if (hash && (anchor || !Object.keys(defaults).some((key) => params.has(key)))) {
      state.tab = panelOf(hash) || state.tab;
      if (chosen().some((key) => key !== "tab")) { write(); } // the address is a link to the view again
      tell();
      if (panelOf(hash) && !panels.includes(hash)) { anchor.scrollIntoView(); }
    } else { state = read(); tell(); }
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    const to = link ? link.hash.slice(1) : "";
    if (!panels.includes(to) && !parts.includes(to)) { return; }
    event.preventDefault(); // the page stays where it is
    set(parts.includes(to) ? { tab: panelOf(to), part: to } : { tab: to });
  });

  // Ranks of a choice of tasks and methods, by the rule of the board.
  let key = "", made = null;
  function anew() {
    if (!data.anew || !(state.off || state.out)) { return null; }
    if (key === state.off + " " + state.out) { return made; }
    key = state.off + " " + state.out;
    const off = list(state.off), out = new Set(list(state.out)), all = data.anew;
    const tasks = all.tasks.map((_, t) => t).filter((t) => !off.includes(all.tasks[t]));
    const methods = all.methods.map((_, m) => m).filter((m) => !out.has(all.methods[m]));
    made = { rank: Object.create(null), weight: Object.create(null), cell: Object.create(null), size: methods.length };
    if (!tasks.length || !methods.length) { return made; }
    const ranking = rankMethods(tasks.map((t) => methods.map((m) => all.q[t][m])), all.rule, methods.map((m) => all.baselines[m]));
    methods.forEach((m, k) => {
      const id = all.methods[m];
      made.rank[id] = ranking.final[k];
      made.cell[id] = Object.create(null);
      tasks.forEach((t, j) => { made.cell[id][all.tasks[t]] = ranking.ranks[j][k]; });
    });
    tasks.forEach((t, j) => { made.weight[all.tasks[t]] = ranking.weights[j]; });
    return made;
  }

  return {
    data, limits, choices, set, list, anew,
    start() {
      tell();
      // A link to a tab is a link to the page; the browser would go to where the tab's text begins.
      if (panels.includes(location.hash.slice(1))) { window.addEventListener("load", () => setTimeout(() => scrollTo(0, 0))); }
    },
    // A value as its column says.
    text(column, value) {
      if (value === null || value === undefined) { return "–"; }
      if (typeof value === "string") { return value; }
      if (column.format === "percent") { return (100 * value).toFixed(column.digits) + "%"; }
      return value.toFixed(column.format === "integer" ? 0 : column.digits).replace("-", "−");
    },
    save(blob, name) {
      const href = URL.createObjectURL(blob);
      Object.assign(document.createElement("a"), { href, download: data.board + "-" + name }).click();
      setTimeout(() => URL.revokeObjectURL(href), 1000);
    },
    get state() { return state; },
    listen(listener) { listeners.push(listener); },
    picked: () => list(state.pick),
    // The rank that is shown: the board's, or that among the choice.
    rank(row) { const choice = anew(); return choice ? (choice.rank[row.id] ?? null) : row.values.rank; },
    // The filters that are on: each with words, and what switches it off.
    filters() {
      const on = [], many = (noun, names) => (names.length > 4 ? names.length + " " + noun : names.join(", "));
      if (state.q) { on.push({ words: "name contains “" + state.q + "”", off: { q: "" } }); }
      if (state.base) { on.push({ words: "no baselines", off: { base: "" } }); }
      limits.forEach((limit, i) => { if (state[limit]) { on.push({ words: data.limits[i].label + " at most " + state[limit], off: { [limit]: "" } }); } });
      choices.forEach((choice, i) => { if (state[choice]) { on.push({ words: data.choices[i].label + ": " + state[choice], off: { [choice]: "" } }); } });
      if (state.lap) { on.push({ words: "no overlaps", off: { lap: "" } }); }
      const off = data.tasks.filter((task) => list(state.off).includes(task.id)).map((task) => task.name);
      const out = data.rows.filter((row) => list(state.out).includes(row.id)).map((row) => row.title);
      if (off.length) { on.push({ words: "without " + many("tasks", off), off: { off: "" } }); }
      if (out.length) { on.push({ words: "ranked without " + many("methods", out), off: { out: "" } }); }
      return on;
    },
    visible(row) {
      return state.q.toLowerCase().split(/\s+/).every((part) => row.find.includes(part))
        && !(state.base && row.base) && !list(state.out).includes(row.id)
        && !(state.lap && Object.keys(row.overlaps).length)
        && choices.every((choice, i) => !state[choice] || words(row, i).includes(state[choice]))
        && limits.every((limit, i) => {
          const value = row.values[data.limits[i].key];
          return !state[limit] || (value !== null && value <= Number(state[limit]));
        });
    },
    shownTasks: () => data.tasks.map((task) => !list(state.off).includes(task.id)),
    // What is behind the cells of methods is in files of their own, one for each method; each is loaded once.
    give(id, cells) { details[id] = cells; },
    need(ids, then) {
      Promise.all(ids.map((id) => waiting[id] ||= new Promise((done) => {
        const script = Object.assign(document.createElement("script"), { src: "method/" + id + ".js", onload: done, onerror: done });
        document.head.append(script);
      }))).then(() => then(ids.map((id) => details[id] || {})));
    },
  };
})();
