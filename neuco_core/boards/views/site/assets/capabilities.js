// Capabilities: one ranking is open; in the picture of profiles the chosen methods have a colour, and it can be saved.
"use strict";
(() => {
  const byId = (id) => document.getElementById(id), { node } = neuco;
  const strip = byId("capability-tabs"), picture = byId("profile");

  function open(state) {
    const key = state.cap || neuco.data.axes[0];
    [...strip.children].forEach((link) => {
      const own = link.hash === "#capability-" + key;
      if (own) { link.setAttribute("aria-current", "true"); } else { link.removeAttribute("aria-current"); }
      byId(link.hash.slice(1)).toggleAttribute("data-open", own);
      if (own) { strip.scrollLeft = link.offsetLeft - strip.offsetLeft - 40; } // it may be beyond the edge of a phone
    });
  }
  if (strip) {
    const choose = (hash) => neuco.set({ tab: "capabilities", cap: hash.slice("#capability-".length) });
    strip.addEventListener("click", (event) => {
      if (event.target.hash) { event.preventDefault(); choose(event.target.hash); }
    });
    if (location.hash.startsWith("#capability-")) { neuco.state.cap = location.hash.slice("#capability-".length); }
    neuco.listen(open);
  }
  if (!picture) { return; }

  const groups = new Map([...picture.querySelectorAll(".who")].map((group) => [group.dataset.method, group]));
  const rows = neuco.data.rows.filter((row) => groups.has(row.id));
  const first = [...picture.querySelectorAll(".chosen")].map((group) => group.dataset.method);
  function chosen() {
    const picked = neuco.picked().filter((id) => groups.has(id)).slice(0, 2);
    return picked.length ? picked : first;
  }
  function select(ids, k) {
    const options = rows.map((row) => node("option", { value: row.id }, (row.values.rank ?? "–") + "  " + row.title));
    const box = node("select", { "aria-label": "Method " + "AB"[k] }, ...(k ? [node("option", { value: "" }, "no other")] : []), ...options);
    box.value = ids[k] || "";
    box.addEventListener("change", () => {
      const next = [ids[0], ids[1]];
      next[k] = box.value;
      neuco.set({ pick: next.filter((id, i) => id && next.indexOf(id) === i).join(",") });
      byId("profile-tools").querySelectorAll("select")[k].focus();
    });
    return node("label", {}, node("span", { "class": "key c" + k }, ""), box);
  }
  function button(words, then) {
    const made = node("button", { type: "button", "class": "quiet" }, words);
    made.addEventListener("click", then);
    return made;
  }

  // A file has no style sheet: what is seen is written into each element, and what is hidden is left out.
  const KEPT = ["fill", "stroke", "stroke-width", "stroke-linecap", "fill-opacity", "stroke-opacity", "font-size", "font-weight", "text-anchor", "transform"];
  function still(from, to) {
    const style = getComputedStyle(from);
    KEPT.forEach((name) => { const value = style.getPropertyValue(name); if (value && value !== "none" || name === "fill") { to.setAttribute(name, value); } });
    to.removeAttribute("class");
    [...from.children].map((child, k) => [child, to.children[k]]).forEach(([child, copy]) => {
      if (child.tagName !== "title" && getComputedStyle(child).display === "none") { copy.remove(); } else if (child.tagName !== "title") { still(child, copy); }
    });
  }
  function asText() {
    const copy = picture.cloneNode(true), width = picture.clientWidth, height = picture.clientHeight, edge = 24;
    still(picture, copy);
    ["id", "transform", "stroke-width"].forEach((name) => copy.removeAttribute(name));
    Object.entries({ x: edge, y: edge, width, height }).forEach(([name, value]) => copy.setAttribute(name, value));
    const page = getComputedStyle(document.body), size = { width: width + 2 * edge, height: height + 2 * edge };
    const whole = neuco.draw("svg", { ...size, "font-family": page.fontFamily }, neuco.draw("rect", { ...size, fill: page.backgroundColor }), copy);
    return { ...size, text: new XMLSerializer().serializeToString(whole) };
  }
  function save(blob, end) {
    const href = URL.createObjectURL(blob);
    Object.assign(document.createElement("a"), { href, download: neuco.data.board + "-profile." + end }).click();
    setTimeout(() => URL.revokeObjectURL(href), 1000);
  }
  function saveSvg() { save(new Blob([asText().text], { type: "image/svg+xml" }), "svg"); }
  function savePng() {
    const { text, width, height } = asText(), canvas = node("canvas", { width: 2 * width, height: 2 * height });
    const image = Object.assign(new Image(), { src: "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text) });
    image.addEventListener("load", () => {
      canvas.getContext("2d").drawImage(image, 0, 0, 2 * width, 2 * height);
      canvas.toBlob((blob) => save(blob, "png"));
    });
  }

  let shown = "";
  function colour() {
    const ids = chosen();
    if (shown === ids.join()) { return; }
    shown = ids.join();
    groups.forEach((group, id) => {
      const k = ids.indexOf(id);
      group.setAttribute("class", k < 0 ? "who" : "who chosen c" + k);
    });
    picture.append(...ids.map((id) => groups.get(id)).reverse()); // the chosen lie on top, the first of them highest
    picture.classList.toggle("alone", ids.length === 1);
    const titles = ids.map((id) => rows.find((row) => row.id === id).title);
    picture.setAttribute("aria-label", "Profiles over " + neuco.data.axes.length + " capabilities: " + titles.join(", "));
    byId("profile-tools").replaceChildren(select(ids, 0), select(ids, 1), button("Save as SVG", saveSvg), button("Save as PNG", savePng));
  }
  neuco.listen(colour);
})();
