/** Documents that the server makes. */

/** How their schemes begin. */
export const MADE = "jaxsight-";
