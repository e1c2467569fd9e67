// What the reader has chosen, kept in the address after "#", so that a link shows the same view.
"use strict";
var neuco = (function () {
  var data = JSON.parse(document.getElementById("board-data").textContent);
  var shows = data.cellColumns.map(function (column) { return column.key; });
  var defaults = { sort: "rank", dir: "", q: "", show: shows[0] || "", base: "", kind: "", pick: "", facts: "", lap: "" };
  // A filter for each column of counts: max-dim=64 shows embeddings of at most 64 numbers.
  var limits = data.limits.map(function (column) { return "max-" + column.key; });
  // A filter for each fact of few words: is-confirmed=yes.
  var choices = data.choices.map(function (fact) { return "is-" + fact.key; });
  limits.concat(choices).forEach(function (name) { defaults[name] = ""; });
  var state = read();
  var listeners = [];

  function read() {
    var found = Object.assign({}, defaults);
    new URLSearchParams(location.hash.slice(1)).forEach(function (value, key) {
      if (Object.prototype.hasOwnProperty.call(defaults, key)) { found[key] = value; }
    });
    return mend(found);
  }
  // A link may come from an older board or from a stranger: what is not known here is as if it were not said.
  function mend(found) {
    function keep(key, allowed) { if (allowed.indexOf(found[key]) < 0) { found[key] = defaults[key]; } }
    keep("show", shows);
    keep("base", ["hide"]);
    keep("lap", ["hide"]);
    keep("facts", ["show"]);
    choices.forEach(function (choice, i) { keep(choice, data.rows.map(function (row) { return word(row, i); })); });
    keep("kind", data.tasks.map(function (task) { return task.kind; }));
    limits.forEach(function (limit, i) {
      keep(limit, data.rows.map(function (row) { return String(row.values[data.limits[i].key]); }).filter(Number));
    });
    var tasks = data.tasks.filter(function (task) { return !found.kind || task.kind === found.kind; });
    var sorted = found.sort;
    keep("sort", ["method"].concat(data.columns.map(function (column) { return column.key; }), tasks.map(function (task) { return "task:" + task.id; })));
    keep("dir", found.sort === sorted ? ["asc", "desc"] : []);
    var ids = data.rows.map(function (row) { return row.id; });
    found.pick = found.pick.split(",").filter(function (id) { return ids.indexOf(id) >= 0; }).join(",");
    return found;
  }
  // A fact of a row; what nobody has said is unknown, and a reader may ask for that, too.
  function word(row, i) { return row.values[data.choices[i].key] || "unknown"; }
  // "#main" and the like lead to a place on the page and say nothing about the view.
  function isPlace() {
    var hash = location.hash.slice(1), said = new URLSearchParams(hash);
    return hash !== "" && (document.getElementById(hash) !== null
      || !Object.keys(defaults).some(function (key) { return said.has(key); }));
  }
  function write() {
    var said = new URLSearchParams();
    Object.keys(defaults).forEach(function (key) { if (state[key] !== defaults[key]) { said.set(key, state[key]); } });
    var hash = said.toString();
    history.replaceState(null, "", hash ? "#" + hash : location.pathname + location.search);
  }
  function tell() { listeners.forEach(function (listener) { listener(state); }); }

  window.addEventListener("hashchange", function () {
    if (!isPlace()) { state = read(); tell(); return; }
    var chosen = Object.keys(defaults).some(function (key) { return state[key] !== defaults[key]; });
    if (chosen) { write(); } // the reader is at the place already, and the address is a link to the view again
  });
  return {
    data: data,
    limits: limits,
    choices: choices,
    // A value as its column says.
    text: function (column, value) {
      if (value === null || value === undefined) { return "–"; }
      if (typeof value === "string") { return value; }
      if (column.format === "percent") { return (100 * value).toFixed(column.digits) + "%"; }
      return value.toFixed(column.format === "integer" ? 0 : column.digits).replace("-", "−");
    },
    get state() { return state; },
    set: function (changes) { mend(Object.assign(state, changes)); write(); tell(); },
    listen: function (listener) { listeners.push(listener); },
    picked: function () { return state.pick ? state.pick.split(",") : []; },
    // The filters that are on: each with words, and what switches it off.
    filters: function () {
      var on = [];
      if (state.q) { on.push({ words: "name contains “" + state.q + "”", off: { q: "" } }); }
      if (state.base) { on.push({ words: "no baselines", off: { base: "" } }); }
      limits.forEach(function (limit, i) {
        if (state[limit]) { on.push({ words: data.limits[i].label + " at most " + state[limit], off: { [limit]: "" } }); }
      });
      choices.forEach(function (choice, i) {
        if (state[choice]) { on.push({ words: data.choices[i].label + ": " + state[choice], off: { [choice]: "" } }); }
      });
      if (state.lap) { on.push({ words: "no overlaps", off: { lap: "" } }); }
      if (state.kind) { on.push({ words: state.kind + " tasks only", off: { kind: "" } }); }
      return on;
    },
    visible: function (row) {
      return state.q.toLowerCase().split(/\s+/).every(function (word) { return row.find.indexOf(word) >= 0; })
        && !(state.base && row.base)
        && !(state.lap && Object.keys(row.overlaps).length)
        && choices.every(function (choice, i) { return !state[choice] || word(row, i) === state[choice]; })
        && limits.every(function (limit, i) {
          var value = row.values[data.limits[i].key];
          return !state[limit] || (value !== null && value <= Number(state[limit]));
        });
    },
    shownTasks: function () { return data.tasks.map(function (task) { return !state.kind || task.kind === state.kind; }); }
  };
})();
