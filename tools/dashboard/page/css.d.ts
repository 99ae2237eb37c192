// Stylesheets are imported for the bundler, which writes them into page.css.
declare module '*.css';
