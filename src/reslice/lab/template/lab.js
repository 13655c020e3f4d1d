"use strict";
(() => {
  const root = document.documentElement;
  const themes = ["auto", "light", "dark"];

  // A page that is opened from a file may have no store; the theme is then forgotten, and nothing else.
  function keptTheme() {
    try {
      return localStorage.getItem("reslice-theme");
    } catch {
      return null;
    }
  }

  function keepTheme(theme) {
    try {
      localStorage.setItem("reslice-theme", theme);
    } catch {
      return;
    }
  }

  function setTheme(theme) {
    if (theme === "auto") delete root.dataset.theme;
    else root.dataset.theme = theme;
  }

  let theme = themes.includes(keptTheme()) ? keptTheme() : "auto";
  setTheme(theme);

  function begin() {
    const form = document.getElementById("controls");
    const states = [...document.querySelectorAll(".state")];
    const initial = document.querySelector(".state.default");
    const button = document.getElementById("theme");
    let isFollowed = false;

    function element(hash) {
      try {
        return document.getElementById(decodeURIComponent(hash.slice(1)));
      } catch {
        return null;
      }
    }

    // A hash that names nothing on the page is the default state; one that names a part of the lesson is no state.
    function named(hash) {
      const found = element(hash) ?? initial;
      return states.includes(found) ? found : null;
    }

    function show(state) {
      for (const each of states) each.classList.toggle("shown", each === state);
      state.querySelector(".copy").textContent = "Copy";
      for (const name of ["pattern", "range", "times", "start"]) form.elements[name].value = state.dataset[name];
      const behind = document.getElementById("more");
      if (behind.querySelector("input:checked:not([data-usual])")) behind.open = true;
      const glance = document.getElementById("glance");
      glance.textContent = state.dataset.glance;
      glance.className = `glance ${state.dataset.tone}`;
    }

    function arrive() {
      const state = named(location.hash);
      if (state === null) return;
      show(state);
      if (!isFollowed) return;
      isFollowed = false;
      state.querySelector("h2").focus({ preventScroll: true });
      state.scrollIntoView();
    }

    function choose() {
      const chosen = ["pattern", "range", "times", "start"].map((name) => form.elements[name].value);
      const state = document.getElementById(chosen.join("/"));
      history.pushState(null, "", `#${state.id}`);
      show(state);
    }

    // Where there is no clipboard, the SQL is selected: the reader's own keys then copy it.
    async function copy(from) {
      const code = from.closest(".state").querySelector("pre");
      try {
        await navigator.clipboard.writeText(code.textContent);
        from.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(code);
        from.textContent = "Selected";
      }
    }

    function nextTheme() {
      theme = themes[(themes.indexOf(theme) + 1) % themes.length];
      setTheme(theme);
      keepTheme(theme);
      button.textContent = `Theme: ${theme}`;
    }

    show(named(location.hash) ?? initial);
    root.classList.add("scripted");
    button.textContent = `Theme: ${theme}`;
    button.addEventListener("click", nextTheme);
    form.addEventListener("change", choose);
    form.addEventListener("submit", (event) => event.preventDefault());
    addEventListener("hashchange", arrive);
    document.addEventListener("click", (event) => {
      if (event.target.matches(".copy")) copy(event.target);
      const link = event.target.closest("a[href^='#']");
      isFollowed = link !== null && named(link.hash) !== null;
      if (isFollowed && link.hash === location.hash) arrive();
    });
  }

  document.addEventListener("DOMContentLoaded", begin);
})();
