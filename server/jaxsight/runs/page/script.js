"use strict";
{
  const packed = JSON.parse(document.getElementById("texts").textContent);
  const search = document.getElementById("search");
  const found = document.getElementById("found");

  async function unpacked(number) {
    const bytes = Uint8Array.from(atob(packed[number]), (each) => each.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return new Response(stream).text();
  }

  for (const part of document.querySelectorAll("details[data-text]")) {
    part.addEventListener("toggle", async () => {
      const shown = part.querySelector("pre");
      if (!part.open || shown.textContent) return;
      try {
        shown.textContent = await unpacked(Number(part.dataset.text));
      } catch (error) {
        shown.textContent = `This browser cannot decompress the text: ${error}`;
      }
    });
  }

  function openTarget() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let each = target; each; each = each.parentElement) {
      if (each.localName === "details") each.open = true;
      each.hidden = false;
    }
    target?.scrollIntoView();
  }
  addEventListener("hashchange", openTarget);
  if (location.hash) openTarget();

  const words = (text) => text.toLowerCase();
  // What a part says without its jaxpr and HLO, which are empty until they are opened.
  const parts = [...document.querySelectorAll(".filtered")].map((part) => ({
    part,
    programs: [...part.querySelectorAll("details.program")].map((program) => ({
      program,
      own: words(program.textContent),
    })),
    own: words(part.textContent),
  }));
  const buttons = [...document.querySelectorAll("details[data-text]")].map((part) => ({
    part,
    summary: part.querySelector("summary"),
    title: part.querySelector("summary").textContent,
    number: Number(part.dataset.text),
  }));
  let texts;

  const typed = () => words(search.value).split(/\s+/).filter(Boolean);
  async function filter() {
    const wanted = typed();
    texts ??= Promise.all(packed.map((_, number) => unpacked(number).then(words, () => "")));
    const inside = wanted.length ? await texts : [];
    if (typed().join(" ") !== wanted.join(" ")) return; // another search has begun
    const has = (text) => wanted.every((word) => text.includes(word));
    const holding = new Set();
    for (const { part, summary, title, number } of buttons) {
      const lines = wanted.length ? (inside[number]?.split("\n").filter(has).length ?? 0) : 0;
      summary.textContent = lines ? `${title} (found in ${lines} ${lines === 1 ? "line" : "lines"})` : title;
      for (let each = part; lines && each; each = each.parentElement) holding.add(each);
    }
    let count = 0;
    for (const { part, programs, own } of parts) {
      part.hidden = !has(own) && !holding.has(part);
      count += part.hidden ? 0 : 1;
      const fits = ({ program, own }) => has(own) || holding.has(program);
      const some = programs.some(fits);
      for (const each of programs) each.program.hidden = some && !fits(each);
    }
    found.textContent = wanted.length ? `${count} found` : "";
  }
  search.closest("p").hidden = false;
  search.addEventListener("input", filter);

  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open], [data-text])")];
    for (const each of closed) each.open = true;
  });
  addEventListener("afterprint", () => {
    for (const each of closed) each.open = false;
  });
}
