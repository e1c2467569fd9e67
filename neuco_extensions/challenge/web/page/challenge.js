// Facts, phases with their clocks, and the board. Every word of the server's is set as text, never as HTML.
"use strict";
const $ = id => document.getElementById(id);
const page = { facts: null, skew: 0, team: null, again: [] };

function make(name, text, attributes) {
  const node = document.createElement(name);
  if (text !== undefined && text !== null) { node.textContent = text; }
  for (const [key, value] of Object.entries(attributes || {})) { node.setAttribute(key, value); }
  return node;
}
function fill(node, children) { node.replaceChildren(...children); }
function number(value, digits) {
  return value === null || value === undefined ? "–" : value.toFixed(digits).replace("-", "−");
}
function clockNow() { return Date.now() + page.skew; }
function moment(text) { return new Date(text).toISOString().slice(0, 16).replace("T", " ") + " UTC"; }
function size(bytes) {
  return bytes < 1e6 ? Math.ceil(bytes / 1e3) + " kB" : (bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0) + " MB";
}

function span(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const [days, hours] = [Math.floor(seconds / 86400), Math.floor(seconds / 3600) % 24];
  const [minutes, rest] = [Math.floor(seconds / 60) % 60, seconds % 60];
  const two = value => String(value).padStart(2, "0");
  return days ? `${days} d ${hours} h ${two(minutes)} min` : `${hours}:${two(minutes)}:${two(rest)}`;
}

function stateOf(phase) {
  const now = clockNow();
  if (now < Date.parse(phase.start)) { return ["upcoming", Date.parse(phase.start) - now, "until it starts"]; }
  if (now < Date.parse(phase.end)) { return ["open", Date.parse(phase.end) - now, "left"]; }
  return ["over", 0, ""];
}

function plural(count, noun) { return `${count} ${noun}${count === 1 ? "" : "s"}`; }

function phaseCard(name, phase) {
  const told = { ladder: `a new mean Q is told if it beats your best by one standard error and by ${phase.step}`, rounded: "the mean Q, rounded", none: "no scores are told before the end" };
  const card = make("article", null, { class: "phase", "data-phase": name });
  const head = make("h3", name);
  head.append(make("span", "", { class: "badge" }));
  const facts = [
    `${moment(phase.start)} to ${moment(phase.end)}`,
    `${plural(phase.tasks, "hidden task")}, ${phase.k} splits each`,
    `${plural(phase.per_day, "submission")} a day, ${phase.in_all} in all`,
    `Answer: ${told[phase.feedback]}`,
  ];
  for (const one of page.facts.amendments.filter(one => one.phase === name)) {
    facts.push(`Extended on ${moment(one.made)}: it was to end at ${moment(one.old_end)}`);
  }
  if (phase.after.length) { facts.push(`Ranked: teams with a score in ${phase.after.join(", ")}`); }
  const list = make("ul");
  fill(list, facts.map(fact => make("li", fact)));
  const ids = make("li", null, { class: "ids" });
  ids.append(make("a", "The ids that a file must have", { href: `api/phases/${encodeURIComponent(name)}/ids` }));
  list.append(ids);
  card.append(head, make("p", "", { class: "clock" }), list);
  return card;
}

function tickClocks() {
  for (const card of document.querySelectorAll(".phase")) {
    const [state, left, words] = stateOf(page.facts.phases[card.dataset.phase]);
    card.classList.toggle("open", state === "open");
    card.querySelector(".badge").textContent = state;
    card.querySelector(".ids").hidden = state === "upcoming";
    const clock = card.querySelector(".clock");
    if (state === "over") { clock.textContent = "over"; } else { fill(clock, [span(left) + " ", make("small", words)]); }
  }
}

async function get(path, token) {
  const headers = token ? { Authorization: "Bearer " + token } : {};
  const answer = await fetch(path, { headers, cache: "no-store", credentials: "omit" });
  let body = {};
  try { body = await answer.json(); } catch (error) { /* a proxy's own page */ }
  return { status: answer.status, body };
}

async function showBoard() {
  const name = $("board-phase").value;
  const { status, body } = await get(`api/phases/${encodeURIComponent(name)}/board`);
  if (name !== $("board-phase").value) { return; } // another one was chosen meanwhile
  const phase = page.facts.phases[name];
  const table = $("board-table");
  table.hidden = status !== 200 || !body.teams.length;
  if (status !== 200) {
    $("board-note").textContent = status === 404 ? "The hosts show the board of this phase after its end." : body.error || "The board cannot be had now.";
    return;
  }
  const live = phase.feedback === "ladder" ? "Teams stand by their last submission that climbed." : "Numbers are rounded.";
  const words = body.final ? "Final, from exact scores." : `Not final. ${live}`;
  $("board-note").textContent = body.teams.length ? words : "No team has a score that may be seen yet.";
  fill(table.tBodies[0], body.teams.map(row => boardRow(row, body.final ? 3 : phase.digits)));
}

function boardRow(row, digits) {
  const line = make("tr", null, row.team === page.team ? { class: "mine" } : {});
  const name = make("th", row.title || row.team, { scope: "row" });
  if (row.team === page.team) { name.append(make("span", "you", { class: "badge" })); }
  if (row.note) { name.append(make("small", row.note)); }
  line.append(
    make("td", row.rank === null ? "–" : row.rank, { class: "number" }), name,
    make("td", number(row.mean_q, digits), { class: "number" }),
    make("td", row.submissions === null ? "–" : row.submissions, { class: "number" }));
  return line;
}

function showFacts() {
  const facts = page.facts;
  document.title = `${facts.title} · neuco`;
  $("title").textContent = facts.title;
  $("about").textContent = `One embedding for each sample of ${facts.dataset}, scored on tasks that nobody is shown.`;
  fill($("phase-list"), Object.entries(facts.phases).map(([name, phase]) => phaseCard(name, phase)));
  const names = Object.keys(facts.phases);
  fill($("board-phase"), names.map(name => make("option", name, { value: name })));
  const latest = names.filter(name => stateOf(facts.phases[name])[0] !== "upcoming").pop();
  if (latest) { $("board-phase").value = latest; }
  fill($("rule-list"), [
    `One file of embeddings with exactly the ids of the phase, at most ${facts.limits.dim} dimensions and ${size(facts.limits.bytes)}. CSV, Parquet or NPZ; only data, never code.`,
    `Answers and the board change at whole multiples of ${facts.limits.tick} s, so that their times tell nothing of the hidden tasks.`,
    "The same file again is the same submission and counts once.",
    "A file that cannot be read costs none of your submissions. An upload counts from the moment it is complete.",
  ].map(text => make("li", text)));
  const address = new URL("api/phases/", document.baseURI).href;
  $("command").textContent = `curl -T embeddings.npz -H "Authorization: Bearer $TOKEN" \\\n  "${address}${latest || names[0]}/submissions?public=true"`;
  fill($("files"), facts.files.map(name => {
    const line = make("li");
    line.append(make("a", name, { href: "files/" + encodeURIComponent(name) }));
    return line;
  }));
}

// Just after each tick, and a little later for some, so that not all pages ask at once.
function schedule() {
  const tick = Math.max(page.facts.limits.tick, 2) * 1000;
  const wait = tick - (clockNow() % tick) + 300 + Math.random() * Math.min(2000, tick / 2);
  setTimeout(async () => {
    if (!document.hidden) { for (const again of page.again) { try { await again(); } catch (error) { /* next time */ } } }
    schedule();
  }, wait);
}

async function begin() {
  const trouble = $("trouble");
  try {
    const { status, body } = await get("api/challenge");
    if (status !== 200) { throw new Error(body.error || "The challenge cannot be had now."); }
    page.facts = body;
    page.skew = Date.parse(body.now) - Date.now();
    trouble.hidden = true;
  } catch (error) {
    trouble.textContent = error instanceof TypeError ? "The server cannot be reached. Trying again…" : error.message;
    trouble.hidden = false;
    setTimeout(begin, 5000);
    return;
  }
  showFacts();
  tickClocks();
  setInterval(tickClocks, 1000);
  $("board-phase").addEventListener("change", showBoard);
  page.again.push(showBoard);
  document.dispatchEvent(new Event("facts"));  // before the board: until then the form to sign in does nothing
  try { await showBoard(); } catch (error) { /* at the next tick */ }
  schedule();
}
document.addEventListener("DOMContentLoaded", begin);
