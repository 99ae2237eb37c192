// The parameters of rails over WebSocket; src/params.ts puts them into the table of all.
import { bool, int, list, type ParamRows, string } from '../../param-spec.ts';

export const WS_PARAMS = {
  btl_ws_if_include: list('user', '', 'As btl_tcp_if_include, for WebSocket rails.'),
  btl_ws_if_exclude: list('user', 'docker0,virbr0,veth-docker*,br-*,cni*,flannel*', 'As btl_tcp_if_exclude, for WebSocket rails.'),
  btl_ws_port_min: int('user', 0, 'port', 0, 65535, 'Lowest port to listen on; 0 = any.'),
  btl_ws_port_range: int('user', 100, 'ports', 1, 65535, 'How many ports from btl_ws_port_min on may be tried.'),
  btl_ws_standby: bool('user', false, 'WebSocket rails only work while no other rail is up.'),
  btl_ws_tls_cert_file: string('user', '', 'PEM certificate for wss:// rails; empty = ws:// without TLS.'),
  btl_ws_tls_key_file: string('user', '', 'PEM private key that belongs to btl_ws_tls_cert_file.'),
  btl_ws_tls_ca_file: string('user', '', 'PEM certificates that the other side must be signed by.'),
  btl_ws_route_check: bool('tuner', true, 'As btl_tcp_route_check, for WebSocket rails.'),
} as const satisfies ParamRows;
