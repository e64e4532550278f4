// Filters, orders, the state in the address, and copying. Without it, the pages show everything.
"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  const all = (query, under = document) => [...under.querySelectorAll(query)];
  const form = document.querySelector("form.filters");
  const status = document.getElementById("status");

  // The state: what differs from the page as it was written. It is the part of the address after
  // "#", since pages from files may not change any other part. An anchor has no "=".
  let state = new Map();

  function readAddress() {
    const text = location.hash.slice(1);
    state = new Map(text.includes("=") ? new URLSearchParams(text) : []);
  }

  function writeAddress() {
    const kept = [...state].filter(([, value]) => value);
    const text = new URLSearchParams(kept).toString();
    const anchor = location.hash.includes("=") || text ? "" : location.hash;
    history.replaceState(null, "", text ? "#" + text : anchor || location.pathname + location.search);
  }

  function change(name, value) {
    state.set(name, value);
    writeAddress();
    apply();
  }

  // Filters

  const filters = () => ["api", "language", "severity", "group"].filter((name) => state.get(name));

  const has = (element, name) =>
    element.dataset[name] === undefined || element.dataset[name].split("|").includes(state.get(name));

  const matches = (element, names) => names.every((name) => has(element, name));

  const words = () => (state.get("text") || "").toLowerCase().split(/\s+/).filter(Boolean);

  function contains(element) {
    const text = (element.dataset.text || element.textContent).toLowerCase();
    return words().every((word) => text.includes(word));
  }

  // A text that occurs in one table only, such as the name of a quirk, hides nothing in the others.
  function byText(elements) {
    const found = elements.filter(contains);
    return words().length && found.length ? new Set(found) : null;
  }

  function applyList(table, anywhere) {
    const rows = all("tbody > tr", table);
    const found = byText(rows);
    const most = state.get("all") === table.id || words().length || filters().length
      ? Infinity : Number(table.dataset.most || Infinity);
    let shown = 0;
    for (const row of rows) {
      const fits = matches(row, filters()) && (found ? found.has(row) : !words().length || anywhere);
      row.hidden = !fits || shown >= most;
      shown += fits ? 1 : 0;
    }
    const more = document.querySelector(`[data-more="${table.id}"]`);
    if (more) more.hidden = shown <= most;
    return [shown, rows.length];
  }

  function applyMatrix(table, anywhere) {
    const heads = all("thead th", table).slice(1);
    const rows = all("tbody > tr", table);
    const severity = state.get("severity");
    const foundColumns = byText(heads);
    const foundRows = byText(rows.map((row) => row.querySelector("th")));
    const columns = heads.map((head) => {
      const fits = matches(head, filters().filter((name) => name !== "group"));
      return fits && (foundColumns ? foundColumns.has(head) : !words().length || !!foundRows || anywhere);
    });
    heads.forEach((head, at) => { head.hidden = !columns[at]; });
    for (const row of rows) {
      let any = !severity;
      all("td", row).forEach((cell, at) => {
        cell.hidden = !columns[at];
        cell.classList.toggle("faint", !!severity && cell.dataset.k !== severity);
        any = any || (columns[at] && cell.dataset.k === severity);
      });
      const text = foundRows && !foundColumns ? foundRows.has(row.querySelector("th")) : true;
      row.hidden = !any || !text;
    }
    return [columns.filter(Boolean).length, heads.length];
  }

  // Orders

  const collator = new Intl.Collator("en", { numeric: true });
  const value = (cell) => cell.dataset.value ?? cell.textContent.trim();

  function sortList(table, order) {
    const heads = all("thead th", table);
    const down = order.startsWith("-");
    const at = heads.findIndex((head) => head.dataset.sort === order.replace(/^-/, ""));
    heads.forEach((head, n) => {
      if (!head.dataset.sort) return;
      head.setAttribute("aria-sort", n === at ? (down ? "descending" : "ascending") : "none");
    });
    const body = table.tBodies[0];
    const rows = [...body.rows];
    if (!table.original) table.original = rows;
    const sorted = at < 0 ? table.original : [...table.original].sort(
      (a, b) => (down ? -1 : 1) * collator.compare(value(a.cells[at]), value(b.cells[at])));
    body.append(...sorted);
  }

  function sortMatrix(table, order) {
    const down = order.startsWith("-");
    const key = order.replace(/^-/, "");
    const row = all("tbody th[data-row]", table).find((one) => "row:" + one.dataset.row === key);
    all("tbody th[data-row]", table).forEach((one) => {
      one.setAttribute("aria-sort", one === row ? (down ? "descending" : "ascending") : "none");
    });
    const lines = [table.tHead.rows[0], ...table.tBodies[0].rows];
    if (!table.columns) table.columns = lines.map((line) => [...line.cells].slice(1));
    const ranks = ["wrong-call", "silent-failure", "error-unseen", "cut-unreported", "data-lost",
      "request-changed", "wrong-metadata", "loud-failure", "unreliable", "non-strict", "as-plain",
      "allowed", "adapter", "informational", "not-judged", "not-applicable", "tolerated", "right"];
    const keyOf = (at) => {
      const head = table.columns[0][at];
      if (row) {
        const cell = table.columns[lines.indexOf(row.parentElement)][at];
        const rank = ranks.indexOf(cell.dataset.k);
        const count = parseInt(cell.textContent.replace(/^\D+/, ""), 10) || 0;
        return cell.dataset.k ? String(100000 + rank * 1000 - Math.min(count, 900)) : "999999";
      }
      if (key === "place") return head.dataset.place === "0" ? (down ? "-1" : "9999") : head.dataset.place;
      return head.dataset[key] || "";
    };
    const original = table.columns[0].map((_, at) => at);
    const sorted = !key ? original : [...original].sort(
      (a, b) => (down ? -1 : 1) * collator.compare(keyOf(a), keyOf(b)) || a - b);
    lines.forEach((line, n) => line.append(...sorted.map((at) => table.columns[n][at])));
  }

  // Everything that depends on the state

  function apply() {
    for (const table of all("table.list")) sortList(table, state.get(table.id) || "");
    const matrix = document.querySelector("table.matrix");
    if (matrix) sortMatrix(matrix, state.get("order") || "");
    if (!form) return;
    for (const field of all("select, input", form)) field.value = state.get(field.name) || "";
    if (form.elements.order && form.elements.order.selectedIndex < 0) form.elements.order.value = "";
    const names = form.dataset.for.split(" ");
    const tables = names.map((id) => document.getElementById(id)).filter(Boolean);
    const anywhere = tables.some((table) => table.classList.contains("matrix")
      ? byText([...all("thead th", table).slice(1), ...all("tbody th", table)])
      : byText(all("tbody > tr", table)));
    for (const table of tables) {
      const apply = table.classList.contains("matrix") ? applyMatrix : applyList;
      // The matrix reads texts of cells by position: its columns are in the order of the page here.
      const [shown, count] = apply(table, anywhere);
      const output = form.querySelector(`output[data-count="${table.id}"]`);
      if (output) {
        const text = `${shown} of ${count} ${table.dataset.unit} shown`;
        if (output.textContent !== text) output.textContent = text;
      }
    }
  }

  function toButton(head, press) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", press);
  }

  const turned = (now, name) => (now === name ? "-" + name : now === "-" + name ? "" : name);

  for (const table of all("table.list")) {
    for (const head of all("th[data-sort]", table)) {
      toButton(head, () => change(table.id, turned(state.get(table.id), head.dataset.sort)));
    }
  }
  for (const head of all("th[data-row]")) {
    toButton(head, () => change("order", turned(state.get("order"), "row:" + head.dataset.row)));
  }
  if (form) {
    form.addEventListener("input", (event) => change(event.target.name, event.target.value));
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", (event) => {
      event.preventDefault();
      state = new Map();
      writeAddress();
      apply();
    });
  }
  for (const button of all("[data-more]")) {
    button.addEventListener("click", () => change("all", button.dataset.more));
  }

  // Arrow keys move between the cells of the matrix.
  const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  for (const table of all("table.matrix")) {
    table.addEventListener("keydown", (event) => {
      const cell = event.target.closest("td");
      const step = steps[event.key];
      if (!cell || !step || event.altKey || event.ctrlKey || event.metaKey) return;
      let row = cell.parentElement;
      let at = cell.cellIndex;
      for (;;) {
        if (step[0]) row = step[0] < 0 ? row.previousElementSibling : row.nextElementSibling;
        at += step[1];
        const next = row && row.cells[at];
        if (!next || next.tagName !== "TD") return;
        const link = next.hidden || row.hidden ? null : next.querySelector("a");
        if (link) {
          event.preventDefault();
          link.focus();
          return;
        }
      }
    });
  }

  // Copying

  function say(text) {
    status.textContent = text;
    clearTimeout(say.timer);
    say.timer = setTimeout(() => { status.textContent = ""; }, 5000);
  }

  async function bytesOf(stream) {
    const text = atob(stream.dataset.packed);
    const bytes = Uint8Array.from(text, (one) => one.charCodeAt(0));
    if (stream.dataset.packing !== "gzip") return bytes;
    const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(unpacked).arrayBuffer());
  }

  // POSIX shells give these bytes with printf, NUL and other controls too.
  function printf(bytes) {
    const known = { 10: "\\n", 13: "\\r", 9: "\\t", 37: "%%", 39: "'\\''", 92: "\\\\" };
    const parts = Array.from(bytes, (one) => known[one]
      || (one >= 32 && one < 127 ? String.fromCharCode(one) : "\\" + one.toString(8).padStart(3, "0")));
    return `printf '${parts.join("")}'`;
  }

  // A text that a page selects loses its carriage returns; the event of copying keeps them.
  function copyByEvent(text) {
    const give = (event) => {
      event.clipboardData.setData("text/plain", text);
      event.preventDefault();
    };
    document.addEventListener("copy", give, { once: true });
    const done = document.execCommand("copy");
    document.removeEventListener("copy", give);
    return done;
  }

  async function copyText(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      return copyByEvent(text);
    }
  }

  function save(bytes, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([bytes]));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  async function copy(button) {
    const kind = button.dataset.copy;
    if (kind === "code") {
      const text = button.closest(".command").querySelector("code").textContent;
      return (await copyText(text)) ? "Copied" : "The browser does not allow copying";
    }
    const stream = button.closest(".stream");
    const bytes = await bytesOf(stream);
    if (kind === "file") {
      save(bytes, stream.dataset.name + ".sse");
      return `Saved ${bytes.length} bytes`;
    }
    const text = kind === "printf" ? printf(bytes) : new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
    return (await copyText(text)) ? `Copied ${bytes.length} bytes` : "The browser does not allow copying";
  }

  for (const button of all("button.copy")) {
    button.addEventListener("click", async () => say(await copy(button)));
  }

  // Folded parts are printed, and opened by addresses that point into them.
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = all("details:not([open])");
    for (const one of closed) one.open = true;
  });
  addEventListener("afterprint", () => {
    for (const one of closed) one.open = false;
  });

  function openTarget() {
    const id = location.hash.slice(1);
    const target = id && !id.includes("=") && document.getElementById(id);
    if (!target) return;
    for (let one = target; one; one = one.parentElement) if (one.tagName === "DETAILS") one.open = true;
    target.scrollIntoView();
  }

  addEventListener("hashchange", () => {
    readAddress();
    apply();
    openTarget();
  });
  readAddress();
  apply();
  openTarget();
})();
