/** Files as they are; see esbuild.mjs. */
declare module "text:*" {
  const text: string;
  export default text;
}

/** The file compressed: see `inflated.ts`. */
declare module "deflated:*" {
  const base64: string;
  export default base64;
}
