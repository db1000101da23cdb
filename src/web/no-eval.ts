import { config } from "zod";

/** Imported before any schema is made: the page's policy forbids `eval`, and zod would probe for it. */
config({ jitless: true });
