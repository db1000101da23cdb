/**
 * The names that spans carry: OpenTelemetry's semantic conventions for generative AI, which still move, so they are
 * here and nowhere else (https://opentelemetry.io/docs/specs/semconv/gen-ai/). What they have no name for is `colloquy.*`.
 */
export const names = {
  operation: "gen_ai.operation.name",
  provider: "gen_ai.provider.name",
  agentId: "gen_ai.agent.id",
  agentName: "gen_ai.agent.name",
  requestModel: "gen_ai.request.model",
  stream: "gen_ai.request.stream",
  temperature: "gen_ai.request.temperature",
  maxTokens: "gen_ai.request.max_tokens",
  finishReasons: "gen_ai.response.finish_reasons",
  inputTokens: "gen_ai.usage.input_tokens",
  outputTokens: "gen_ai.usage.output_tokens",
  toolName: "gen_ai.tool.name",
  toolType: "gen_ai.tool.type",
  toolCallId: "gen_ai.tool.call.id",
  instructions: "gen_ai.system_instructions",
  inputMessages: "gen_ai.input.messages",
  outputMessages: "gen_ai.output.messages",
  toolArguments: "gen_ai.tool.call.arguments",
  toolResult: "gen_ai.tool.call.result",
  errorType: "error.type",
  serviceName: "service.name",
  workspaceId: "colloquy.workspace.id",
  runId: "colloquy.run.id",
  runStatus: "colloquy.run.status",
  spaceIds: "colloquy.space.ids",
  step: "colloquy.step",
  tokensEstimated: "colloquy.usage.estimated",
} as const;

export const operations = { run: "invoke_agent", step: "chat", call: "execute_tool" } as const;
