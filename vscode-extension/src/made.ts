/** Documents that the server makes. */

/** How their schemes begin. */
export const MADE = "jaxsight-";

/** Languages of printed programs, whose documents the server reads; each has a scheme, and files may be in it. */
export const PROGRAMS = ["jaxpr", "stablehlo", "hlo", "kernels"] as const;

/** The paths of files that a lens and a command show as source; the language of `.mlir` is another extension's. */
export const PROGRAM_FILE = /\.(mlir|stablehlo|hlo)$/;
