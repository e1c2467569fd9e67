// The table: sort, search, filter, show another value, choose tasks and methods.
"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const table = byId("board"), body = table.tBodies[0], lines = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  const { columns, cellColumns, tasks, rows } = neuco.data;
  const firstTask = heads.findIndex((head) => head.dataset.key && head.dataset.key.startsWith("task:"));
  const find = (list, key) => list.find((column) => column.key === key);
  const shownColumn = () => cellColumns.indexOf(find(cellColumns, neuco.state.show));
  const rowOf = (line) => rows[Number(line.dataset.i)];
  const taskAt = (key) => tasks.findIndex((task) => "task:" + task.id === key);

  // A range is sorted by its lower end.
  function value(row, key) {
    if (key === "method") { return row.title.toLowerCase(); }
    if (key === "rank") { return neuco.rank(row); }
    const column = find(columns, key), cell = row.cells[taskAt(key)];
    if (column) { return column.format === "range" ? (row.intervals[key] || [null])[0] : row.values[key]; }
    return cell ? cell[shownColumn()] : null;
  }
  // Without a word of the reader the best comes first; a column of cells without a direction has that of the task.
  function ascending(state) {
    if (state.dir) { return state.dir === "asc"; }
    const task = tasks[taskAt(state.sort)];
    if (!task) { return !find(columns, state.sort) || find(columns, state.sort).direction === "lower"; }
    const direction = find(cellColumns, state.show).direction;
    return direction ? direction === "lower" : !task.greater_is_better;
  }
  function sort(state) {
    const up = ascending(state) ? 1 : -1;
    const keys = new Map(lines.map((line) => [line, value(rowOf(line), state.sort)]));
    lines.sort((a, b) => {
      const first = keys.get(a), second = keys.get(b);
      const none = (first === null || first === undefined) - (second === null || second === undefined);
      if (none) { return none; } // what is not known comes last, whichever way round
      if (first < second) { return -up; }
      if (first > second) { return up; }
      return Number(a.dataset.i) - Number(b.dataset.i);
    });
    body.append(...lines);
    heads.filter((head) => head.dataset.key).forEach((head) => {
      head.setAttribute("aria-sort", head.dataset.key !== state.sort ? "none" : up > 0 ? "ascending" : "descending");
    });
    // The rules between rows are about neighbours in the ranking.
    table.classList.toggle("by-rank", state.sort === "rank" && up > 0 && !neuco.anew());
  }

  function filter() {
    let count = 0;
    const shown = neuco.shownTasks(), picked = new Set(neuco.picked());
    lines.forEach((line) => {
      const row = rowOf(line), on = picked.has(row.id);
      line.hidden = !neuco.visible(row);
      count += line.hidden ? 0 : 1;
      line.classList.toggle("picked", on);
      line.querySelector(".pick").checked = on;
    });
    [table.tHead.rows[0], ...lines].forEach((line) => {
      shown.forEach((open, i) => { line.cells[firstTask + i].hidden = !open; });
    });
    byId("status").textContent = count + " of " + lines.length + " methods shown" + choiceText() + ".";
    byId("chosen").hidden = !picked.size;
    byId("chosen-said").textContent = picked.size + " selected ";
    // What is focused must not lie under the header, which stays in place.
    requestAnimationFrame(() => { table.parentNode.style.scrollPaddingTop = table.tHead.offsetHeight + 8 + "px"; });
  }
  function choiceText() {
    const choice = neuco.anew();
    if (choice) {
      return ". Ranked anew on " + Object.keys(choice.weight).length + " of " + tasks.length + " tasks among " + choice.size
        + " methods, without intervals; grey columns are those of the whole board";
    }
    return neuco.filters().length ? ". Ranks and weights are those of the whole board" : "";
  }

  // Text and colour of the cells follow the value that is shown.
  function cells(state) {
    const at = shownColumn(), column = cellColumns[at], choice = neuco.anew();
    const ranked = choice && column && neuco.data.anew.cells === column.key;
    lines.forEach((line) => {
      const row = rowOf(line);
      row.cells.forEach((cell, i) => {
        if (!cell) { return; }
        const shown = line.cells[firstTask + i], marked = shown.classList.contains("marked");
        const level = ranked ? "-" : row.heat[at][i];
        const text = ranked ? (choice.cell[row.id] || {})[tasks[i].id] : cell[at];
        shown.textContent = (marked ? "≈" : "") + neuco.text(column, text);
        if (!marked) { shown.className = level === "-" ? "cell" : "cell h" + parseInt(level, 16); }
      });
    });
  }

  // The ranks of a choice, or again those of the board: figure, dot and weight.
  const dots = new Map(lines.map((line) => [line, line.querySelector(".dot")]));
  const before = new Map([...dots].filter(([, dot]) => dot).map(([line, dot]) => [line, dot.getAttribute("cx")]));
  const ranges = new Map(lines.map((line) => [line, (line.querySelector(".range") || {}).textContent]));
  const bars = new Map(tasks.map((task, i) => [task.id, heads[firstTask + i] && heads[firstTask + i].querySelector(".weight")]));
  const sizes = new Map([...bars].filter(([, bar]) => bar).map(([id, bar]) => [id, [bar.getAttribute("y"), bar.getAttribute("height")]]));
  function ranks() {
    const choice = neuco.anew(), last = Math.max(1, before.size - 1);
    table.classList.toggle("anew", Boolean(choice));
    before.forEach((at, line) => {
      const row = rowOf(line), rank = neuco.rank(row);
      line.querySelector(".rank b").textContent = rank === null ? "" : rank;
      line.querySelector(".range").textContent = choice ? "was " + row.values.rank : ranges.get(line);
      dots.get(line).setAttribute("cx", choice && rank !== null ? (3 + 94 * (rank - 1) / last) + "%" : at);
    });
    const most = choice ? Math.max(...Object.values(choice.weight)) : 1;
    sizes.forEach(([y, height], id) => {
      const size = choice ? 16 * (choice.weight[id] || 0) / most : Number(height);
      bars.get(id).setAttribute("y", choice ? 16 - size : y);
      bars.get(id).setAttribute("height", size);
    });
  }

  function chip(words, off) {
    const box = byId("chips"), button = Object.assign(document.createElement("button"), { type: "button", textContent: words });
    button.addEventListener("click", (event) => {
      const at = [...box.children].indexOf(button);
      neuco.set(off);
      // The chip is gone. With a pointer nothing is lost by that, and a phone would open its keyboard for the search.
      if (event.detail === 0) { (box.children[at] || box.lastChild || byId("search")).focus(); }
    });
    box.append(button);
    return button;
  }
  function chips() {
    byId("chips").replaceChildren();
    const on = neuco.filters();
    on.forEach((filter) => chip(filter.words + " ×", filter.off).setAttribute("aria-label", "Remove the filter: " + filter.words));
    if (on.length > 1) { chip("Remove all", Object.assign({}, ...on.map((filter) => filter.off))); }
  }

  const choices = ["show", ...neuco.limits, ...neuco.choices];
  const boxes = { "no-baselines": ["base", "hide"], "no-overlap": ["lap", "hide"], "more": ["more", "show"], "far": ["far", "show"], "estimated": ["est", "show"] };
  const taskBoxes = [...document.querySelectorAll("#choose [data-task]")];
  function controls(state) {
    if (byId("search").value !== state.q) { byId("search").value = state.q; }
    choices.forEach((id) => { if (byId(id)) { byId(id).value = state[id]; } });
    Object.keys(boxes).forEach((id) => { if (byId(id)) { byId(id).checked = Boolean(state[boxes[id][0]]); } });
    const off = neuco.list(state.off);
    taskBoxes.forEach((box) => { box.checked = !off.includes(box.dataset.task); });
    if (taskBoxes.length) { byId("tasks-said").textContent = "Tasks: " + (off.length ? tasks.length - off.length + " of " : "all ") + tasks.length; }
    table.classList.toggle("with-more", Boolean(state.more));
    byId("ranking").classList.toggle("folded-away", Boolean(byId("far")) && !state.far);
    // Estimates are of the first value alone.
    const guessed = Boolean(state.est) && state.show === cellColumns[0].key;
    table.classList.toggle("with-estimated", guessed);
    if (byId("estimated-said")) { byId("estimated-said").hidden = !guessed; }
  }

  // The page comes sorted by rank and with scores; touching thousands of cells for nothing would be felt.
  let ranked = "", sorted = "rank asc " + neuco.state.show, written = (cellColumns[0] || {}).key + " ";
  table.classList.add("by-rank");
  // Of a long table the first screens are drawn first; the rest when the reader has begun, or goes there.
  const whole = () => table.classList.add("ready");
  window.addEventListener("load", () => setTimeout(whole, 300));
  table.parentNode.addEventListener("scroll", whole, { once: true });
  function update(state) {
    const choice = state.off + " " + state.out, again = choice.trim() !== ranked.trim();
    if (again) { ranks(); ranked = choice; }
    const wanted = state.sort + (ascending(state) ? " asc " : " desc ") + state.show;
    if (wanted !== sorted || again) { sort(state); sorted = wanted; }
    const text = state.show + " " + (neuco.data.anew && neuco.data.anew.cells === state.show ? choice.trim() : "");
    if (text !== written) { cells(state); written = text; }
    filter(); chips(); controls(state);
  }

  // The columns of the file: the ends of an interval have columns of their own.
  function fields() {
    const fields = neuco.anew() ? [["rank_anew", (row) => neuco.rank(row)]] : [];
    columns.forEach(({ key }) => {
      fields.push([key, (row) => row.values[key]]);
      if (!rows.some((row) => row.intervals[key])) { return; }
      ["low", "high"].forEach((end, i) => fields.push([key + "_" + end, (row) => (row.intervals[key] || [])[i]]));
    });
    return fields;
  }
  function csv() {
    // A cell that starts like a formula would be run by a spreadsheet.
    const harmless = (value) => (typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? "'" + value : value);
    const quote = (value) => '"' + String(harmless(value) ?? "").replace(/"/g, '""') + '"';
    const shown = neuco.shownTasks(), all = fields(), isShown = (_, i) => shown[i];
    const names = tasks.filter(isShown).map((task) => task.id + " (" + neuco.state.show + ")");
    const lists = lines.filter((line) => !line.hidden).map((line) => {
      const row = rowOf(line);
      return [row.id, row.title, ...all.map((field) => field[1](row)), ...row.cells.filter(isShown).map((cell) => cell && cell[shownColumn()])];
    });
    return [["method", "title", ...all.map((field) => field[0]), ...names], ...lists].map((cells) => cells.map(quote).join(",")).join("\n") + "\n";
  }

  heads.filter((head) => head.dataset.key).forEach((head) => head.querySelector("button").addEventListener("click", () => {
    const key = head.dataset.key, state = neuco.state;
    if (state.sort !== key) { neuco.set({ sort: key, dir: "" }); return; }
    neuco.set({ dir: ascending(state) ? "desc" : "asc" });
  }));
  // Nor under the names; browsers do not heed a scroll margin inside a header that stays in place.
  table.tHead.addEventListener("focusin", (event) => {
    const head = event.target.closest("th"), box = table.parentNode;
    const under = heads[1].getBoundingClientRect().right - head.getBoundingClientRect().left;
    if (head === heads[0]) { box.scrollLeft = 0; } else if (head !== heads[1] && under > 0) { box.scrollLeft -= under; }
  });
  byId("search").addEventListener("input", (event) => neuco.set({ q: event.target.value }));
  choices.filter(byId).forEach((id) => byId(id).addEventListener("change", (event) => neuco.set({ [id]: event.target.value })));
  Object.keys(boxes).filter(byId).forEach((id) => {
    const [key, on] = boxes[id];
    byId(id).addEventListener("change", (event) => {
      const opened = key === "est" && event.target.checked && byId("far") ? { far: "show" } : {};
      neuco.set({ [key]: event.target.checked ? on : "", ...opened });
      // The empty cells may be far to the right.
      if (key === "est" && event.target.checked) { body.querySelector(".estimated").scrollIntoView({ block: "nearest", inline: "center" }); }
    });
  });
  taskBoxes.forEach((box) => box.addEventListener("change", () => {
    neuco.set({ off: taskBoxes.filter((other) => !other.checked).map((other) => other.dataset.task).join(",") });
  }));
  document.querySelectorAll("#choose [data-kind]").forEach((button) => button.addEventListener("click", () => {
    const kind = button.dataset.kind;
    neuco.set({ off: tasks.filter((task) => kind && task.kind !== kind).map((task) => task.id).join(",") });
  }));
  const chosen = {
    "go-compare": () => ({ tab: "compare" }),
    "go-without": () => ({ out: [...new Set([...neuco.list(neuco.state.out), ...neuco.picked()])].join(","), pick: "" }),
    "go-only": () => ({ out: neuco.data.anew.methods.filter((id) => !neuco.picked().includes(id)).join(","), pick: "" }),
    "go-clear": () => ({ pick: "" }),
  };
  Object.keys(chosen).filter(byId).forEach((id) => byId(id).addEventListener("click", () => neuco.set(chosen[id]())));
  byId("download").addEventListener("click", () => neuco.save(new Blob([csv()], { type: "text/csv" }), "view.csv"));
  body.addEventListener("change", (event) => {
    if (!event.target.classList.contains("pick")) { return; }
    const id = rowOf(event.target.closest("tr")).id, picked = neuco.picked().filter((other) => other !== id);
    if (event.target.checked) { picked.push(id); }
    neuco.set({ pick: picked.join(",") });
  });
  // What a score is made of, written when it is pointed at: in every cell of a large board it would be half the page.
  body.addEventListener("pointerover", (event) => {
    const cell = event.target.closest("td.cell");
    if (!cell || cell.title) { return; }
    const i = cell.cellIndex - firstTask, row = rowOf(cell.parentNode), values = row.cells[i];
    if (!values) { return; }
    const overlap = row.overlaps[tasks[i].dataset];
    cell.title = tasks[i].title + ": " + cellColumns.map((column, k) => column.label + " " + neuco.text(column, values[k])).join(", ")
      + (overlap ? ". The method was " + overlap : "");
  });
  function open(cell) {
    const row = rowOf(cell.parentNode), i = cell.cellIndex - firstTask;
    cell.tabIndex = -1; // so that the focus can come back to it
    if (row.cells[i]) { neuco.open(row, i, cell); }
  }
  body.addEventListener("click", (event) => {
    const cell = event.target.closest("td.cell");
    if (cell && !getSelection().toString()) { open(cell); }
  });
  // "/" goes to the search, Escape empties it, arrows go from method to method and from cell to cell.
  document.addEventListener("keydown", (event) => {
    // With Ctrl, Alt or Meta it is the browser's; Shift is how some keyboards write it.
    const bare = !event.ctrlKey && !event.altKey && !event.metaKey;
    if (event.key === "/" && bare && !/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) {
      event.preventDefault();
      neuco.set({ tab: "ranking" });
      byId("search").focus();
    } else if (event.key === "Escape" && event.target === byId("search")) {
      neuco.set({ q: "" });
    }
  });
  body.addEventListener("keydown", (event) => {
    const [down, right] = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key] || [0, 0];
    const here = event.target.closest(".name a, td.cell"), shown = lines.filter((line) => !line.hidden);
    if (here && event.key === "Enter" && here.tagName === "TD") { open(here); }
    if (!here || !(down || right)) { return; }
    const across = (line) => [line.querySelector(".name a"), ...[...line.querySelectorAll("td.cell")].filter((cell) => !cell.hidden)];
    const line = here.closest("tr"), next = (across(shown[shown.indexOf(line) + down] || line) || [])[across(line).indexOf(here) + right];
    if (next) { event.preventDefault(); next.tabIndex = next.tagName === "TD" ? -1 : 0; next.focus(); }
  });

  byId("toolbar").hidden = false;
  neuco.listen(update);
})();
