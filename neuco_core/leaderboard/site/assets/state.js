// What the reader has chosen, kept in the address after "#", so that a link shows the same view.
"use strict";
var neuco = (function () {
  var data = JSON.parse(document.getElementById("board-data").textContent);
  var defaults = { sort: "rank", dir: "", q: "", show: "score", base: "", dim: "", kind: "", pick: "" };
  var state = read();
  var listeners = [];

  function read() {
    var found = Object.assign({}, defaults);
    new URLSearchParams(location.hash.slice(1)).forEach(function (value, key) {
      if (Object.prototype.hasOwnProperty.call(defaults, key)) { found[key] = value; }
    });
    return found;
  }
  function write() {
    var said = new URLSearchParams();
    Object.keys(defaults).forEach(function (key) {
      if (state[key] !== defaults[key]) { said.set(key, state[key]); }
    });
    var hash = said.toString();
    history.replaceState(null, "", hash ? "#" + hash : location.pathname + location.search);
  }
  function tell() { listeners.forEach(function (listener) { listener(state); }); }

  window.addEventListener("hashchange", function () { state = read(); tell(); });
  return {
    data: data,
    get state() { return state; },
    set: function (changes) { Object.assign(state, changes); write(); tell(); },
    listen: function (listener) { listeners.push(listener); },
    picked: function () { return state.pick ? state.pick.split(",") : []; },
    // The filters that are on: each with words, and what switches it off.
    filters: function () {
      var on = [];
      if (state.q) { on.push({ words: "name contains “" + state.q + "”", off: { q: "" } }); }
      if (state.base) { on.push({ words: "no baselines", off: { base: "" } }); }
      if (state.dim) { on.push({ words: "size at most " + state.dim, off: { dim: "" } }); }
      if (state.kind) { on.push({ words: state.kind + " tasks only", off: { kind: "" } }); }
      return on;
    },
    visible: function (row) {
      return (!state.q || row.find.indexOf(state.q.toLowerCase()) >= 0)
        && !(state.base && row.base)
        && (!state.dim || (row.dim !== null && row.dim <= Number(state.dim)));
    },
    shownTasks: function () {
      return data.tasks.map(function (task) { return !state.kind || task.kind === state.kind; });
    }
  };
})();
