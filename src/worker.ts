import { provideRehearsal } from "./models/models.ts";
import { app } from "./routes/app.ts";

export { Agent } from "./agent/agent.ts";
export { Space } from "./space/space.ts";
export { Workspace } from "./workspace/workspace.ts";

provideRehearsal(async (spec) => (await import("./rehearsal/rehearsal-model.ts")).createRehearsalModel(spec));

export default app;
