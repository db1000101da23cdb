import { defineConfig } from "drizzle-kit";

/** One history per actor class: `npm run migrations` runs this once for each, told by ACTOR. */
const actor = process.env.ACTOR;
const actors = ["workspace", "space", "agent", "person", "endpoint"];
if (actor === undefined || !actors.includes(actor)) {
  throw new Error(`set ACTOR to one of ${actors.join(", ")}`);
}

export default defineConfig({
  dialect: "sqlite",
  driver: "durable-sqlite",
  schema: `./src/${actor}/**/schema.ts`,
  out: `./migrations/${actor}`,
});
