import { defineConfig } from "drizzle-kit";

/** One history per actor class: `npm run migrations` runs this once for each, told by ACTOR. */
const actor = process.env.ACTOR;
if (actor !== "workspace" && actor !== "space" && actor !== "agent" && actor !== "person") {
  throw new Error("set ACTOR to workspace, space, agent or person");
}

export default defineConfig({
  dialect: "sqlite",
  driver: "durable-sqlite",
  schema: `./src/${actor}/**/schema.ts`,
  out: `./migrations/${actor}`,
});
