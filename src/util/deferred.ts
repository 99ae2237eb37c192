// A promise that somebody else settles.

export class Deferred<T> {
  readonly promise: Promise<T>;
  resolve!: (value: T) => void;
  isDone = false;

  constructor() {
    this.promise = new Promise((resolve) => {
      this.resolve = (value) => {
        this.isDone = true;
        resolve(value);
      };
    });
  }
}
