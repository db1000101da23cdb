import type { ApiDocument } from "./openapi.ts";

export const docsPage = (document: ApiDocument): string => `<!doctype html><title>${document.info.title}</title>`;
