/**
 * `@ai-sdk/gateway` in the upload: see `[alias]` in wrangler.toml. `ai` asks it for a model that is given by its name
 * alone. Here each model is given as an object, so it would be 22 KiB that nobody calls.
 */
const isInstance = (): boolean => false;
export const GatewayError = { isInstance };
export const GatewayAuthenticationError = { isInstance };

export const gateway = (): never => {
  throw new Error("a model is given as an object, and never by its name alone");
};
export { gateway as createGateway };
