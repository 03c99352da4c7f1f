/** Documents that the server makes. */

/** How their schemes begin. */
export const MADE = "jaxsight-";

/** Languages of printed programs, whose documents the server reads; each has a scheme, and files may be in it. */
export const PROGRAMS = ["jaxpr", "stablehlo", "hlo", "kernels"] as const;
