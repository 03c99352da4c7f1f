/** Light or dark, as what is around the page is: a notebook's page says so, else the system does. Paper is light. */

type Theme = "light" | "dark";

const DARK = "(prefers-color-scheme: dark)";

export function followTheme(): void {
  const dark = matchMedia(DARK);
  const around = outside();
  const follow = (): void => {
    set((around !== undefined ? themeOf(around) : undefined) ?? (dark.matches ? "dark" : "light"));
  };
  follow();
  dark.addEventListener("change", follow);
  addEventListener("afterprint", follow);
  addEventListener("beforeprint", () => {
    set("light");
  });
  if (around !== undefined) {
    new MutationObserver(follow).observe(around, { attributes: true, subtree: false });
  }
}

function set(theme: Theme): void {
  document.documentElement.setAttribute("data-theme", theme);
}

/** The body of the page that this one is a frame of, if it may be read. */
function outside(): HTMLElement | undefined {
  try {
    const { parent } = window;
    return parent === window ? undefined : parent.document.body;
  } catch {
    return undefined; // another origin
  }
}

/** What JupyterLab and Notebook, VS Code, marimo and others write on their page. */
function themeOf(body: HTMLElement): Theme | undefined {
  const root = body.ownerDocument.documentElement;
  const jupyter = body.getAttribute("data-jp-theme-light");
  if (jupyter !== null) {
    return jupyter === "false" ? "dark" : "light";
  }
  const said = [
    body.getAttribute("data-vscode-theme-kind"),
    body.getAttribute("data-theme"),
    root.getAttribute("data-theme"),
    body.className,
    root.getAttribute("theme"),
  ].join(" ");
  return /\bdark\b|-dark\b/.test(said) ? "dark" : /\blight\b/.test(said) ? "light" : undefined;
}
