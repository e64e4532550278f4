// What the theme leaves out for readers who do not see the page or use no mouse. It makes some of its
// elements after a page has loaded, so each change of the page is looked at.
function complete() {
  for (const nav of document.querySelectorAll("nav.md-code__nav:not([role])")) nav.setAttribute("role", "none");
  for (const part of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex]), pre > code:not([tabindex])")) {
    if (part.scrollWidth > part.clientWidth) part.setAttribute("tabindex", "0");
  }
  name();
}

// Several parts of the navigation have one name, such as that of the page: the later ones get a number.
function name() {
  const taken = new Map();
  for (const nav of document.querySelectorAll("nav:not([role])")) {
    const label = document.getElementById(nav.getAttribute("aria-labelledby") || "");
    const text = nav.dataset.label || (label ? label.textContent.trim() : nav.getAttribute("aria-label")) || "pages";
    const count = (taken.get(text) || 0) + 1;
    const wanted = count > 1 ? `${text}, ${count}` : text;
    taken.set(text, count);
    nav.dataset.label = text;
    nav.removeAttribute("aria-labelledby");
    if (nav.getAttribute("aria-label") !== wanted) nav.setAttribute("aria-label", wanted);
  }
}

new MutationObserver(complete).observe(document.documentElement, { childList: true, subtree: true });
addEventListener("resize", complete);
complete();
