import { app } from "./routes/app.ts";

export { Agent } from "./agent/agent.ts";
export { Space } from "./space/space.ts";
export { Workspace } from "./workspace/workspace.ts";

export default app;
