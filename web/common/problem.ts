/** What a process says about a call that it refuses. */
export interface Problem {
  kind: string;
  message: string;
  hint?: string | null;
  data?: unknown;
}

/** A call that failed, with what the process said about it. */
export class CallError extends Error {
  readonly status: number;
  readonly problem: Problem;

  constructor(status: number, problem: Problem) {
    super(problem.message);
    this.status = status;
    this.problem = problem;
  }
}
