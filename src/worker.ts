import { provideRehearsal } from "./models/models.ts";
import { app } from "./routes/app.ts";
import { loadedOnce } from "./shared/loaded-once.ts";

export { Agent } from "./agent/agent.ts";
export { Endpoint } from "./endpoint/endpoint.ts";
export { Person } from "./person/person.ts";
export { Space } from "./space/space.ts";
export { Workspace } from "./workspace/workspace.ts";

const rehearsal = loadedOnce(() => import("./rehearsal/rehearsal-model.ts"));
provideRehearsal(async (spec) => (await rehearsal()).createRehearsalModel(spec));

export default app;
