/** Files as they are; see esbuild.mjs. */
declare module "text:*" {
  const text: string;
  export default text;
}
