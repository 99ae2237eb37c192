// Types of s3rver, as far as the tests use it: the package has none.
declare module 's3rver' {
  export default class S3rver {
    constructor(options: {
      port: number;
      address: string;
      silent: boolean;
      directory: string;
      configureBuckets: { name: string; configs: string[] }[];
    });
    /** Of Node's http, once it runs. */
    readonly httpServer: { closeAllConnections(): void };
    run(): Promise<{ address: string; port: number }>;
    close(): Promise<void>;
  }
}
