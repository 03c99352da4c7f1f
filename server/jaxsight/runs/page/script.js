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

  const parts = [...document.querySelectorAll(".filtered")].map((part) => ({
    part,
    programs: [...part.querySelectorAll("details.program")].map((each) => [each, words(each)]),
    text: words(part),
  }));
  function words(part) {
    return part.textContent.toLowerCase();
  }
  function filter() {
    const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const has = (text) => wanted.every((word) => text.includes(word));
    let count = 0;
    for (const { part, programs, text } of parts) {
      part.hidden = !has(text);
      count += part.hidden ? 0 : 1;
      const some = programs.some(([, own]) => has(own));
      for (const [program, own] of programs) program.hidden = some && !has(own);
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
