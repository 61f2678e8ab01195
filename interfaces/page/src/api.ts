// The process of this page: docs/protocols/studio.md.
import { processOf } from "../../../web/common/process";

const { respond, ...process } = processOf({
  secretName: "dragoman-studio-secret",
  base: "/api",
  subject: "The studio process",
  command: "dragoman studio",
  drawsEach: true,
});

export const { problemOf, openSession, forgetSession, call, callInParts, readEvents } = process;

/** A file that the process makes. */
export async function fetchFile(path: string, body: unknown): Promise<{ blob: Blob; name: string }> {
  const response = await respond("POST", path, body);
  const disposition = response.headers.get("Content-Disposition") ?? "";
  return { blob: await response.blob(), name: /filename="([^"]+)"/.exec(disposition)?.[1] ?? "interface" };
}
