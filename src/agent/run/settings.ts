import type { AgentConfig } from "../../protocol/agent.ts";
import type { MindSettings } from "../../protocol/agent-rpc.ts";
import { mcpSeparator, type ToolConfig, type ToolRule } from "../../protocol/tool.ts";
import { sameJson } from "../../shared/same-json.ts";
import type { AgentRow } from "../identity.ts";
import { builtinTool, findTool } from "../tools/registry.ts";
import { continuityOf } from "./continuity/continuities.ts";
import type { RunServices } from "./run-services.ts";

const isAllowed = ({ confidential }: Pick<ToolConfig, "confidential">): boolean => confidential === "allowed";

const nothing = (): unknown[] => [];

/** `isWriter`: other agents let this one write blocks of theirs. */
type Config = AgentConfig & { isWriter?: boolean };

/** By its tools for memory it does: all readers of those blocks read what it writes. */
const writesOthers = ({ memoryTools, isWriter }: Pick<Config, "memoryTools" | "isWriter">): boolean =>
  memoryTools && isWriter === true;

/** A guest's own model is asked for nothing but summaries, where no other is named for these. */
const asksModel = ({ runtime, context: { compaction } }: Config): boolean =>
  runtime !== "guest" || (compaction.strategy === "recursive_summarization" && compaction.model === undefined);

/** For each field, what reads a compartment's words. The types demand an entry for a new field. */
const readers = {
  ...{ name: nothing, description: nothing, instructions: nothing, continuity: nothing, messaging: nothing },
  ...{ limits: nothing, heartbeat: nothing, toolRules: nothing },
  memoryTools: (config) => (writesOthers(config) ? ["others' blocks"] : []),
  // Of another program than before, its owner says nothing here.
  runtime: ({ runtime }) => (runtime === "guest" ? [runtime] : []),
  model: (config) => (asksModel(config) ? [config.model] : []),
  embedder: ({ embedder }) => [embedder],
  context: ({ context }) => [context.compaction.model],
  tools: ({ tools }) => tools.filter(isAllowed),
  mcp: ({ mcp }) => mcp.servers.filter(isAllowed),
} satisfies Record<keyof AgentConfig, (config: Config) => unknown[]>;

/** Whether any tool of this config in a compartment tells words outside. */
const tellsOutside = (config: Config): boolean =>
  config.tools.length + config.mcp.servers.length > 0 || writesOthers(config);

/** The rules that keep a compartment's words from outside tools: those that refuse calls of the tools that it has. */
const rulesThatKeep = (config: Config): ToolRule[] => {
  const inside = configInCompartment(config);
  if (!tellsOutside(inside)) return [];
  return inside.toolRules.filter(({ rule, tool }) => {
    if (rule === "start_constraint") return true;
    return (rule === "max_calls" || rule === "requires_prior") && bringerOf(config)(tool)?.confidential === "allowed";
  });
};

/** Whether nothing keeps the rule, since it asks for a tool that agents of this kind do not have. */
const isHopeless = (config: AgentConfig, rule: ToolRule): boolean => {
  const asked = rule.rule === "requires_prior" ? rule.tools : [rule.tool];
  return asked.some((name) => builtinTool(name) !== undefined && !findTool(name, config));
};

/**
 * The fields by which words of compartments would go where they do not go yet, or more of them (C19). What is taken away tells
 * nothing, but for a rule of a tool that is still there.
 */
export const newReaders = (before: Config, after: Config): string[] => {
  const told = Object.entries(readers).flatMap(([field, readersIn]) => {
    const known = [undefined, ...readersIn(before)];
    return readersIn(after).every((reader) => known.some((one) => sameJson(one, reader))) ? [] : [field];
  });
  const now = configInCompartment(after);
  const isLoose = ({ tool, rule }: ToolRule): boolean =>
    rule === "start_constraint" ? tellsOutside(now) : bringerOf(now)(tool) !== undefined;
  const keeps = (rule: ToolRule): boolean =>
    now.toolRules.some((one) => sameJson(one, rule))
      ? !isHopeless(before, rule) || isHopeless(after, rule)
      : !isLoose(rule);
  return rulesThatKeep(before).every(keeps) ? told : [...told, "toolRules"];
};

/** The config's tool of a name, or the server that brings it; undefined for one that every agent has, and that tells nobody. */
const bringerOf =
  ({ tools, mcp, ...config }: Config) =>
  (name: string): Pick<ToolConfig, "confidential"> | undefined =>
    tools.find((tool) => tool.name === name) ??
    mcp.servers.find((server) => name.startsWith(`${server.name}${mcpSeparator}`)) ??
    (writesOthers(config) && builtinTool(name)?.writesBlock ? { confidential: "allowed" } : undefined);

/** Tells the tools from outside, by their names, that a compartment does not have. */
const withheldBy = (config: AgentConfig): ((name: string) => boolean) => {
  const bringer = bringerOf(config);
  return (name) => {
    const found = bringer(name);
    return found !== undefined && !isAllowed(found);
  };
};

/**
 * The agent's config in a confidential space's compartment: no heartbeat, and of outside tools only those that its
 * owner allows there. A rule goes with its tool; one that names a missing tool as a condition stays.
 */
export const configInCompartment = ({ heartbeat: _, ...config }: Config): Config => {
  const isWithheld = withheldBy(config);
  return {
    ...config,
    tools: config.tools.filter(isAllowed),
    toolRules: config.toolRules.filter(({ tool }) => !isWithheld(tool)),
    mcp: { ...config.mcp, servers: config.mcp.servers.filter(isAllowed) },
  };
};

/** Warns of tool rules that no run of a confidential space can keep. */
export const warningsOf = (config: AgentConfig): string[] => {
  const isWithheld = withheldBy(config);
  return config.toolRules.flatMap((rule, index) => {
    const missing = rule.rule === "requires_prior" && !isWithheld(rule.tool) ? rule.tools.filter(isWithheld) : [];
    if (missing.length === 0) return [];
    const why = `it requires ${missing.join(", ")}, which runs there do not have`;
    return `toolRules.${index}: in confidential spaces each call of ${rule.tool} is refused, since ${why}. Give that confidential: "allowed", or take the rule away.`;
  });
};

/** The settings that a compartment of this agent runs by. */
export const settingsFor = ({ settingsVersion, config, secrets, suspended }: AgentRow): MindSettings => ({
  version: settingsVersion,
  config: configInCompartment(config),
  ...{ secrets, suspended },
});

/** Stores a config as the one that this mind runs by, with what follows from it. In a transaction. */
export const takeConfig = (
  services: RunServices,
  config: AgentConfig,
  isChanged: (field: "mcp" | "embedder") => boolean,
  store: () => void,
): void => {
  if (services.identity.get().config.continuity !== config.continuity) continuityOf(config).takeOver(services);
  store();
  if (isChanged("mcp")) services.mcp.configured();
  if (isChanged("embedder")) services.search.configured();
};

/**
 * Has a compartment run by what its open mind does. Answers whether that was anything new: then what waits for it may go
 * on. An older state that comes late changes nothing.
 */
export const adoptSettings = (
  services: RunServices,
  { version, config, secrets, suspended = false }: MindSettings,
): boolean => {
  const { identity, clock } = services;
  const before = identity.get();
  if (version <= before.settingsVersion) return false;
  const isChanged = (field: keyof AgentConfig): boolean => !sameJson(before.config[field], config[field]);
  services.transaction(() =>
    takeConfig(services, config, isChanged, () =>
      identity.update({ config, secrets, suspended, settingsVersion: version, updatedAt: clock.now() }),
    ),
  );
  services.mcp.reconsider();
  return true;
};
