/** What a hook's secrets are sealed under: they open for no other hook, and for no secret of the workspace. */
export const sealedName = (hookId: string): string => `hook:${hookId}`;
