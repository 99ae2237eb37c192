export { MultirailError } from './errors.ts';
