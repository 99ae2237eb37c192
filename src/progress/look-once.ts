// A look at the rails by the program itself: test(), iprobe(), progressSync(). A program may look again and again until it finds something, and the
// event loop has no turn meanwhile: what the kernel would have told it is asked for here.
import type { Engine } from './engine.ts';

/** Takes what has come, with what the kernel has to say. */
export function lookOnce(engine: Engine): void {
  // From inside a turn the kernel is not asked: what it says may begin another one.
  if (!engine.isRunning) engine.poller?.lookSparingly();
  engine.look();
}
