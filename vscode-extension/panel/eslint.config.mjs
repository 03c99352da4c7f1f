import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["build/", "node_modules/", "**/*.mjs"] },
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      eqeqeq: "error",
    },
  },
  {
    files: ["src/**"],
    ignores: ["src/dom.ts"],
    rules: {
      // Text reaches the page through dom.ts alone, which knows what of it must not.
      "no-restricted-properties": [
        "error",
        ...["innerHTML", "outerHTML", "insertAdjacentHTML", "innerText", "textContent", "srcdoc", "createContextualFragment"].map(
          (property) => ({ property, message: "Use `h`, `s`, `write` or `set` of dom.ts." }),
        ),
      ],
      "no-restricted-syntax": [
        "error",
        {
          selector: "AssignmentExpression > MemberExpression.left[property.name=/^(title|ariaLabel|src|href)$/]",
          message: "Use `set` of dom.ts.",
        },
      ],
    },
  },
  {
    files: ["test/**"],
    // node:test gives promises that nobody has to wait for.
    rules: { "@typescript-eslint/no-floating-promises": "off" },
  },
);
