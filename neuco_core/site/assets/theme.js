// Light, dark or as the system says. Loaded before the page is drawn, so that nothing flashes.
(function () {
  "use strict";
  var order = ["auto", "light", "dark"];
  var root = document.documentElement;

  function stored() {
    try { return localStorage.getItem("neuco-theme"); } catch (error) { return null; }
  }
  function apply(name) {
    if (name === "light" || name === "dark") { root.dataset.theme = name; } else { delete root.dataset.theme; }
  }
  var current = order.indexOf(stored()) < 0 ? "auto" : stored();
  apply(current);
  root.classList.add("scripted"); // one tab is shown, not all

  document.addEventListener("DOMContentLoaded", function () {
    // What does nothing without scripts comes hidden.
    document.querySelectorAll("[data-needs-script]").forEach(function (node) { node.hidden = false; });
    var button = document.getElementById("theme");
    button.textContent = "Theme: " + current;
    button.addEventListener("click", function () {
      current = order[(order.indexOf(current) + 1) % order.length];
      try { localStorage.setItem("neuco-theme", current); } catch (error) { /* private window: forget it */ }
      apply(current);
      button.textContent = "Theme: " + current;
    });
  });
})();
