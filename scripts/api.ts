/** A caller of the house's HTTP API with one credential. Any answer but a success is an error that says what came. */
export type Api = {
  get<T>(path: string): Promise<T>;
  post<T>(path: string, body?: unknown): Promise<T>;
  put(path: string, body: unknown): Promise<void>;
  patch<T>(path: string, body: unknown): Promise<T>;
  delete(path: string): Promise<void>;
  /** The same credential, acting as this entity. */
  as(entityId: string): Api;
};

export const createApi = (url: string, bearer: string, actingEntityId?: string): Api => {
  const call = async (method: string, path: string, body?: unknown): Promise<string> => {
    const response = await fetch(url + path, {
      method,
      headers: {
        authorization: `Bearer ${bearer}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...(actingEntityId ? { "x-entity-id": actingEntityId } : {}),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new ApiError(`${method} ${path} answered ${response.status}: ${text}`, response.status);
    return text;
  };
  const json = async <T>(method: string, path: string, body?: unknown): Promise<T> =>
    JSON.parse(await call(method, path, body)) as T;
  return {
    get: (path) => json("GET", path),
    post: (path, body = {}) => json("POST", path, body),
    put: async (path, body) => {
      await call("PUT", path, body);
    },
    patch: (path, body) => json("PATCH", path, body),
    delete: async (path) => {
      await call("DELETE", path);
    },
    as: (entityId) => createApi(url, bearer, entityId),
  };
};

export class ApiError extends Error {
  readonly status: number;

  constructor(message: string, status: number) {
    super(message);
    this.name = "ApiError";
    this.status = status;
  }
}
