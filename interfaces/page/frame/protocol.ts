// The messages between the page and the frame that shows an interface. Both sides know these types and no others.

/** From the page to the frame. */
export const TO_FRAME = ["INIT", "RENDER_DATA", "THEME_CHANGE", "RESIZE", "NETWORK_RESPONSE", "DESTROY"] as const;

/** From the frame to the page. */
export const FROM_FRAME = ["READY", "RENDER_COMPLETE", "NETWORK_REQUEST", "LOG", "ERROR", "UI_EVENT"] as const;

export type ToFrame = (typeof TO_FRAME)[number];
export type FromFrame = (typeof FROM_FRAME)[number];

export interface Envelope<T extends string = string> {
  type: T;
  payload: Record<string, unknown>;
  nonce: string;
  timestamp: number;
  requestId?: string;
}

/** A body on its way through messages: text as it is, everything else as base64. */
export interface SentBody {
  text?: string;
  base64?: string;
}

export interface NetworkRequest extends SentBody {
  operation: string;
  method: string;
  path: string;
  query: [string, string][];
  headers: [string, string][];
  server: number;
  /** The answer is wanted while it comes: NETWORK_RESPONSE with a `part` each, then one without. */
  inParts: boolean;
}

export interface NetworkResponse extends SentBody {
  status?: number;
  headers?: [string, string][];
  /** In place of an answer: why there is none. */
  error?: string;
}

/** What the page asks of a message before it looks into it; undefined for anything else. */
export function envelopeOf(data: unknown): Envelope | undefined {
  if (data === null || typeof data !== "object") return undefined;
  const { type, payload, nonce, timestamp, requestId } = data as Record<string, unknown>;
  if (typeof type !== "string" || type.length > 40 || typeof nonce !== "string" || typeof timestamp !== "number")
    return undefined;
  if (payload === null || typeof payload !== "object" || Array.isArray(payload)) return undefined;
  if (requestId !== undefined && (typeof requestId !== "string" || requestId.length > 80)) return undefined;
  return { type, payload: payload as Record<string, unknown>, nonce, timestamp, requestId };
}

export function base64Of(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}

export function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}
