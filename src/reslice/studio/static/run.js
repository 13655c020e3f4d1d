"use strict";
// The filter of a diff answers while it is typed: the server is asked for the same page, and its parts are put in place.
for (const form of document.querySelectorAll("form[data-filter]")) {
  let asked = 0;
  let timer;
  const show = async () => {
    const mine = ++asked;
    const address = new URL(form.action);
    for (const [name, value] of new FormData(form)) if (value) address.searchParams.set(name, value);
    const answer = await fetch(address).catch(() => null);
    if (!answer?.ok || mine !== asked) return;
    const found = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (mine !== asked) return;
    for (const part of form.dataset.filter.split(" "))
      document.getElementById(part).replaceChildren(...found.getElementById(part).childNodes);
    address.hash = "";
    history.replaceState(null, "", address);
  };
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(show, 150);
  });
}
