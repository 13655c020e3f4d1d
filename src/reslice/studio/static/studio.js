"use strict";
/* What a script adds: arrow keys in the calendar, a button to copy a command, a comparison that is followed without
   loading the page again. Every page works without it. */

const calendar = document.querySelector("[data-calendar]");
if (calendar) {
  const cells = [...calendar.querySelectorAll("a[data-slice][href]")];
  const last = cells.length - 1;
  let anchor = 0;
  let shown = "";

  const placeOf = (cell) => cells.indexOf(cell);

  /* One cell can be reached with Tab; the arrows lead from it to the others. */
  const reach = (place) => {
    cells.forEach((cell, other) => cell.setAttribute("tabindex", other === place ? "0" : "-1"));
  };

  const mark = (from, to) => {
    const [first, end] = from <= to ? [from, to] : [to, from];
    cells.forEach((cell, place) => cell.classList.toggle("marked", place >= first && place <= end));
    return [cells[first].dataset.slice, cells[end].dataset.slice];
  };

  /* The panel beside the calendar comes from the server, so that it says there what it says here. */
  const show = async ([first, end]) => {
    const address = new URL(cells[0].getAttribute("href"), location.href);
    address.search = new URLSearchParams({ from: first, to: end });
    address.hash = "";
    shown = address.href;
    const answer = await fetch(address);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const panel = page.getElementById("chosen");
    if (shown !== address.href || !panel) return;
    document.getElementById("chosen").replaceWith(panel);
    addCopying(panel);
    history.replaceState(null, "", address);
  };

  const wait = (work, milliseconds) => {
    let timer = 0;
    return (given) => {
      clearTimeout(timer);
      timer = setTimeout(() => work(given), milliseconds);
    };
  };
  const showSoon = wait(show, 150);

  const choose = (place, isExtending) => {
    if (!isExtending) anchor = place;
    reach(place);
    cells[place].focus();
    showSoon(mark(anchor, place));
  };

  /* Slices stand in the order of time: one to the side, or below, is so many later. */
  const across = Number(calendar.dataset.across);
  const down = Number(calendar.dataset.down);
  const steps = { ArrowLeft: -across, ArrowRight: across, ArrowUp: -down, ArrowDown: down };
  const moved = (place, key) => {
    if (key === "Home") return 0;
    if (key === "End") return last;
    const to = place + (steps[key] ?? NaN);
    return to >= 0 && to <= last ? to : place;
  };

  calendar.addEventListener("keydown", (event) => {
    const place = placeOf(event.target.closest("a[data-slice]"));
    if (place < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
    if (!(event.key in steps) && event.key !== "Home" && event.key !== "End") return;
    event.preventDefault();
    choose(moved(place, event.key), event.shiftKey);
  });

  calendar.addEventListener("click", (event) => {
    const place = placeOf(event.target.closest("a[data-slice]"));
    if (place < 0 || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    choose(place, event.shiftKey);
  });

  const marked = cells.findLastIndex((cell) => cell.classList.contains("marked"));
  anchor = Math.max(0, cells.findIndex((cell) => cell.classList.contains("marked")));
  if (cells.length) reach(marked >= 0 ? marked : last);
}

function addCopying(part) {
  if (!navigator.clipboard) return;
  for (const place of part.querySelectorAll(".copy")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.setAttribute("aria-label", `Copy the command: ${place.querySelector("p").textContent}`);
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(place.querySelector("code").textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    place.querySelector(".copy-head").append(button);
  }
}
addCopying(document);

const followed = document.querySelector("[data-follow]");
if (followed) {
  const follow = async () => {
    const answer = await fetch(followed.dataset.follow);
    if (!answer.ok) return location.reload();
    const now = await answer.json();
    if (now.progress !== "running") return location.replace(location.pathname);
    followed.querySelector("[data-step]").textContent = now.step;
    followed.querySelector("[data-seconds]").textContent = now.seconds;
    const bar = followed.querySelector("[data-percent]");
    if (now.percent === null) bar.removeAttribute("value");
    else bar.value = now.percent;
    return setTimeout(follow, 400);
  };
  setTimeout(follow, 400);
}
