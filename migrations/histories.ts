import agentHistory from "./agent/migrations.js";
import agentNewest from "./agent/newest.sql";
import endpointHistory from "./endpoint/migrations.js";
import endpointNewest from "./endpoint/newest.sql";
import personHistory from "./person/migrations.js";
import personNewest from "./person/newest.sql";
import spaceHistory from "./space/migrations.js";
import spaceNewest from "./space/newest.sql";
import workspaceHistory from "./workspace/migrations.js";
import workspaceNewest from "./workspace/newest.sql";
import type { Migrations } from "../src/shared/database.ts";

/** How each kind of object got its tables, and the tables of a new one: `npm run migrations` writes both. */
export const histories = {
  agent: { ...agentHistory, newest: agentNewest },
  endpoint: { ...endpointHistory, newest: endpointNewest },
  person: { ...personHistory, newest: personNewest },
  space: { ...spaceHistory, newest: spaceNewest },
  workspace: { ...workspaceHistory, newest: workspaceNewest },
} satisfies Record<string, Migrations>;
