import { DurableObject } from "cloudflare:workers";
import { Hono } from "hono";
export class Workspace extends DurableObject {}
export class Space extends DurableObject {}
export class Agent extends DurableObject {}
const app = new Hono();
app.get("/healthz", (c) => c.json({ ok: true }));
export default app;
