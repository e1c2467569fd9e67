// The team's side: a token that lives as long as the tab, uploads with progress, and the team's own submissions.
"use strict";
(function () {
  const KEY = "neuco-token";
  const STATES = { received: "waiting", scored: "scored", failed: "failed" };
  let token = null, sending = null, left = {};

  function say(text, bad) {
    $("said").textContent = text;
    $("said").classList.toggle("bad", Boolean(bad));
  }
  function keep(value) {
    token = value;
    try { if (value) { sessionStorage.setItem(KEY, value); } else { sessionStorage.removeItem(KEY); } } catch (error) { /* memory will do */ }
  }
  function stored() { try { return sessionStorage.getItem(KEY); } catch (error) { return null; } }

  async function enter(candidate, asked) {
    let found;
    if (!/^[\x21-\x7e]+$/.test(candidate)) { found = { status: 401, body: {} }; } // no header can hold it
    else {
      try { found = await get("api/submissions", candidate); } catch (error) { say("The server cannot be reached.", true); return; }
    }
    if (found.status !== 200) {
      if (found.status === 401) { leave(""); }
      say(found.status === 401 ? "No team has this token. Check that it is whole." : found.body.error, true);
      if (asked) { $("token").focus(); $("token").select(); }
      return;
    }
    keep(candidate);
    $("token").value = "";
    $("login").hidden = true;
    $("team").hidden = $("own").hidden = false;
    showOwn(found.body);
    if (asked) { say(""); $("file").focus(); }
    showBoard();
  }

  function leave(words) {
    keep(null);
    page.team = null;
    if (sending) { sending.abort(); }
    $("login").hidden = false;
    $("team").hidden = $("own").hidden = true;
    fill($("own-table").tBodies[0], []);
    left = {};
    showLeft();
    say(words);
    showBoard();
  }

  function showLeft() {
    const own = left[$("phase").value];
    $("left-note").textContent = !own ? ""
      : own.today ? `You have ${plural(own.today, "submission")} left today, ${own.in_all} in all.`
      : own.in_all ? `You have no submissions left today, ${own.in_all} in all. The next day begins at 00:00 UTC.`
      : "You have no submissions left in this phase.";
  }

  function showOwn(body) {
    page.team = body.team;
    left = body.left;
    showLeft();
    $("team-title").textContent = body.title;
    const list = body.submissions.slice().reverse();
    const waiting = list.some(own => own.state === "received");
    $("own-table").hidden = !list.length;
    $("own-note").textContent = !list.length ? "None yet."
      : waiting ? `Answers appear at whole multiples of ${page.facts.limits.tick} s, two of them after an upload at the earliest.` : "";
    fill($("own-table").tBodies[0], list.map(ownRow));
  }

  function ownRow(own) {
    const line = make("tr");
    const state = make("td", null, { class: "what" });
    state.append(make("span", STATES[own.state] || own.state, { class: `state ${own.state}` }));
    if (own.message) { state.append(make("small", own.message)); }
    const digits = page.facts.phases[own.phase].digits;
    line.append(
      make("th", own.submission, { scope: "row", class: "number no" }),
      make("td", own.received.slice(0, 19).replace("T", " "), { class: "when" }),
      make("td", own.phase, { class: "of" }), state,
      make("td", number(own.mean_q, digits), { class: "number q" }),
      make("td", own.state === "failed" ? "–" : own.public ? "counts" : "private", { class: "counts" }),
      make("td", own.sha256, { class: "mark file", title: own.sha256 }),
      make("td", own.receipt, { class: "mark receipt", title: own.receipt }));
    // On a phone a row is laid out as a card, and would not be read as a row any more.
    line.setAttribute("role", "row");
    for (const cell of line.children) { cell.setAttribute("role", cell.tagName === "TH" ? "rowheader" : "cell"); }
    return line;
  }

  async function refresh() {
    if (!token) { return; }
    const found = await get("api/submissions", token);
    if (found.status === 200) { showOwn(found.body); }
    if (found.status === 401) { leave("Your token is not valid any more."); }
  }

  function showPhases() {
    const open = Object.keys(page.facts.phases).filter(name => stateOf(page.facts.phases[name])[0] === "open");
    const before = $("phase").value;
    if ($("phase").dataset.open !== open.join()) {
      $("phase").dataset.open = open.join();
      fill($("phase"), open.map(name => make("option", name, { value: name })));
      if (open.includes(before)) { $("phase").value = before; }
      showLeft();
    }
    $("send").disabled = !open.length || Boolean(sending);
    $("file-note").textContent = open.length
      ? `CSV, Parquet or NPZ, at most ${size(page.facts.limits.bytes)} and ${page.facts.limits.dim} dimensions.` : "No phase is open now.";
  }

  function send(event) {
    event.preventDefault();
    const file = $("file").files[0];
    if (!file || sending) { return; }
    if (file.size > page.facts.limits.bytes) { say("The file is larger than the challenge allows.", true); return; }
    // XMLHttpRequest, since fetch does not tell how far an upload is.
    const request = sending = new XMLHttpRequest();
    request.open("POST", `api/phases/${encodeURIComponent($("phase").value)}/submissions?public=${$("public").checked}`);
    request.setRequestHeader("Authorization", "Bearer " + token);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.upload.onprogress = step => { $("progress").value = step.lengthComputable ? 100 * step.loaded / step.total : 0; };
    request.onload = () => ended(request, file);
    request.onerror = () => ended(request, file, "The connection was cut. Upload the file again: if it had arrived, it counts once.");
    request.onabort = () => ended(request, file, "Stopped. Nothing was submitted.");
    $("progress").value = 0;
    $("progress").hidden = $("stop").hidden = false;
    $("send").disabled = true;
    say(`Uploading ${file.name}…`);
    request.send(file);
  }

  function ended(request, file, trouble) {
    sending = null;
    $("progress").hidden = $("stop").hidden = true;
    showPhases();
    if (trouble) { say(trouble, true); return; }
    let body = {};
    try { body = JSON.parse(request.responseText); } catch (error) { /* a proxy's own page */ }
    if (request.status === 201 || request.status === 200) {
      const known = request.status === 200 ? " It was there already and counts once." : "";
      say(`${file.name} is submission ${body.submission}.${known}`);
      $("upload").reset();
      showPhases();
      refresh();
      return;
    }
    const wait = request.getResponseHeader("Retry-After");
    say((body.error || "The upload failed.") + (wait ? ` (in ${wait} s)` : ""), true);
  }

  document.addEventListener("facts", () => {
    showPhases();
    setInterval(showPhases, 1000);
    page.again.push(refresh);
    $("login").addEventListener("submit", event => { event.preventDefault(); enter($("token").value.trim(), true); });
    $("logout").addEventListener("click", () => { leave("Signed out."); $("token").focus(); });
    $("upload").addEventListener("submit", send);
    $("phase").addEventListener("change", showLeft);
    $("stop").addEventListener("click", () => { if (sending) { sending.abort(); } });
    if (stored()) { enter(stored(), false); }
  });
})();
