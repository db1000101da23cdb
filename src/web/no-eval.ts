import { config } from "zod";

/** Imported before anything makes a schema: under the page's policy no code is made at run time, not even to try. */
config({ jitless: true });
