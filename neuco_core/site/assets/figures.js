// The drawings are made with the page. Here they show the methods that the table shows, and highlight those that are
// chosen; who is pointed at is named; a drawing can be saved.
"use strict";
(() => {
  const HUES = 6, DASHES = 3, FIRST = 3;
  const { node } = neuco, rows = new Map(neuco.data.rows.map((row) => [row.id, row]));
  const ranked = neuco.data.rows.filter((row) => row.values.rank !== null);
  const drawings = [...document.querySelectorAll("#forest, #parallel, #scatter, #curves")].map((box) => ({
    box, svg: box.firstElementChild, says: box.parentNode.querySelector(".says"),
    methods: [...box.querySelectorAll("[data-method]")].map((shape) => ({ shape, row: rows.get(shape.dataset.method), look: shape.getAttribute("class").replace(/ c\d d\d/, "") })),
  }));

  // Without a choice of the reader the first three have a colour.
  function colours() {
    const picked = neuco.picked(), looks = Object.create(null); // a method may be called "constructor"
    const ids = picked.length ? picked : ranked.filter((row) => row.values.rank <= FIRST && neuco.visible(row)).slice(0, FIRST).map((row) => row.id);
    ids.forEach((id, i) => { looks[id] = " c" + (i % HUES) + " d" + (Math.floor(i / HUES) % DASHES); });
    return looks;
  }
  function show({ svg, says, methods }) {
    const colour = colours(), open = methods.filter(({ row }) => row && neuco.visible(row));
    methods.forEach(({ shape, row, look }) => shape.setAttribute("class", look + (open.some((other) => other.shape === shape) ? colour[row.id] || "" : " gone")));
    svg.classList.toggle("gone", !open.length);
    // The coloured lie on top.
    open.filter(({ row }) => colour[row.id]).forEach(({ shape }) => shape.parentNode.append(shape));
    const lines = open.filter(({ look }) => look.includes("row")).sort((a, b) => ranked.indexOf(a.row) - ranked.indexOf(b.row));
    lines.forEach(({ shape }, i) => shape.setAttribute("y", 24 + 22 * i));
    const keyed = ranked.filter((row) => colour[row.id] && open.some((other) => other.row === row));
    says.replaceChildren(...keyed.map((row) => node("span", { "class": "key" + colour[row.id] }, row.values.rank + " " + row.title)));
    if (keyed.length > HUES * DASHES) { says.append("Colours and dashes repeat after " + HUES * DASHES + " methods."); }
    if (!open.length) { says.textContent = "No ranked method is shown."; }
    const off = new Set(neuco.list(neuco.state.off));
    svg.querySelectorAll("[data-task]").forEach((label) => label.classList.toggle("off", off.has(label.dataset.task)));
  }
  drawings.forEach(({ box, svg }) => {
    const says = box.parentNode.querySelector(".pointed");
    svg.addEventListener("pointerover", (event) => {
      const shape = event.target.closest("[data-method]");
      svg.querySelectorAll(".over").forEach((other) => other.classList.remove("over"));
      says.textContent = shape && shape.firstElementChild ? shape.firstElementChild.textContent : "";
      if (shape) { shape.classList.add("over"); }
    });
    svg.addEventListener("pointerleave", () => { says.textContent = ""; });
    box.after(node("p", { "class": "saves" }, ...saves(svg, box.id)));
  });

  // One or two methods over the columns.
  const picture = document.querySelector("#profile > svg");
  const groups = new Map(picture ? [...picture.querySelectorAll(".who")].map((group) => [group.dataset.method, group]) : []);
  const first = [...groups].filter(([, group]) => group.classList.contains("chosen")).map(([id]) => id);
  function select(ids, k) {
    const options = [...groups.keys()].filter((id) => rows.has(id)).sort((a, b) => neuco.data.rows.indexOf(rows.get(a)) - neuco.data.rows.indexOf(rows.get(b)));
    const box = node("select", { "aria-label": "Method " + "AB"[k] }, ...(k ? [node("option", { value: "" }, "no other")] : []),
      ...options.map((id) => node("option", { value: id }, (rows.get(id).values.rank ?? "–") + "  " + rows.get(id).title)));
    box.value = ids[k] || "";
    box.addEventListener("change", () => {
      const next = [ids[0], ids[1]];
      next[k] = box.value;
      neuco.set({ pick: next.filter((id, i) => id && next.indexOf(id) === i).join(",") });
      document.getElementById("profile-tools").querySelectorAll("select")[k].focus();
    });
    return node("label", {}, node("span", { "class": "key c" + k }, ""), box);
  }
  let profiled = "";
  function profile() {
    const picked = neuco.picked().filter((id) => groups.has(id)).slice(0, 2), ids = picked.length ? picked : first;
    if (profiled === ids.join()) { return; }
    profiled = ids.join();
    groups.forEach((group, id) => { group.setAttribute("class", ids.includes(id) ? "who chosen c" + ids.indexOf(id) : "who"); });
    picture.append(...ids.map((id) => groups.get(id)).reverse()); // the chosen lie on top, the first of them highest
    picture.classList.toggle("alone", ids.length === 1);
    picture.setAttribute("aria-label", "Profiles over " + neuco.data.axes.length + " columns: " + ids.map((id) => rows.get(id).title).join(", "));
    document.getElementById("profile-tools").replaceChildren(select(ids, 0), select(ids, 1), ...saves(picture, "profile"));
  }

  // A file has no style sheet: what is seen is written into each element, and what is hidden is left out.
  const KEPT = ["fill", "stroke", "stroke-width", "stroke-linecap", "stroke-dasharray", "fill-opacity", "stroke-opacity", "font-size", "font-weight", "text-anchor", "transform", "vector-effect", "overflow"];
  function still(from, to) {
    const style = getComputedStyle(from);
    KEPT.forEach((name) => { const value = style.getPropertyValue(name); if (value && value !== "none" || name === "fill") { to.setAttribute(name, value); } });
    to.removeAttribute("class");
    [...from.children].map((child, k) => [child, to.children[k]]).forEach(([child, copy]) => {
      if (child.tagName !== "title" && getComputedStyle(child).display === "none") { copy.remove(); } else if (child.tagName !== "title") { still(child, copy); }
    });
  }
  function asText(svg) {
    const copy = svg.cloneNode(true), { width, height } = svg.getBoundingClientRect(), edge = 24;
    still(svg, copy);
    ["transform", "stroke-width"].forEach((name) => copy.removeAttribute(name));
    Object.entries({ x: edge, y: edge, width, height }).forEach(([name, value]) => copy.setAttribute(name, value));
    const page = getComputedStyle(document.body), size = { width: width + 2 * edge, height: height + 2 * edge };
    const whole = neuco.draw("svg", { ...size, "font-family": page.fontFamily }, neuco.draw("rect", { ...size, fill: page.backgroundColor }), copy);
    return { ...size, text: new XMLSerializer().serializeToString(whole) };
  }
  function saves(svg, name) {
    const save = (blob, end) => neuco.save(blob, name + "." + end);
    const asSvg = () => save(new Blob([asText(svg).text], { type: "image/svg+xml" }), "svg");
    const asPng = () => {
      const { text, width, height } = asText(svg), canvas = node("canvas", { width: 2 * width, height: 2 * height });
      const image = Object.assign(new Image(), { src: "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text) });
      image.addEventListener("load", () => {
        canvas.getContext("2d").drawImage(image, 0, 0, 2 * width, 2 * height);
        canvas.toBlob((blob) => save(blob, "png"));
      });
    };
    return [["Save as SVG", asSvg], ["Save as PNG", asPng]].map(([words, act]) => {
      const button = node("button", { type: "button", "class": "quiet" }, words);
      button.addEventListener("click", act);
      return button;
    });
  }

  // Drawings are brought up to date when their tab is open.
  neuco.listen(() => {
    drawings.filter(({ box }) => box.closest("[data-open]")).forEach(show);
    if (picture) { profile(); }
  });
  neuco.start();
})();
