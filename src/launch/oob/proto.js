// Made by protobufjs-cli from oob.proto: UPDATE_PROTO=1 npx vitest run --project unit test/unit/launch
import B from"protobufjs/minimal.js";const v=B.Reader,$=B.Writer,i=B.util,s=i.global.Object,f=i.global.undefined,d=i.global.Error,x=i.global.RangeError,O=i.global.
TypeError,k=i.global.Number,S=i.global.parseInt,y=i.global.String,w=i.global.BigInt,P=i.global.Array,m=i.global.Boolean,N=i.global.isFinite,p=B.roots.default||(B.
roots.default={}),J=p.multirail=(()=>{const _={};return _.oob=(function(){const M={};return M.v1=(function(){const L={};return L.Envelope=(function(){const l=function(n){
if(n)for(var t=s.keys(n),o=0;o<t.length;++o)n[t[o]]!=null&&t[o]!=="__proto__"&&(this[t[o]]=n[t[o]])};l.prototype.sequence=i.Long?i.Long.fromBits(0,0,!0):0,l.prototype.
acknowledged=i.Long?i.Long.fromBits(0,0,!0):0,l.prototype.challenge=null,l.prototype.hello=null,l.prototype.welcome=null,l.prototype.refused=null,l.prototype.ping=
null,l.prototype.ack=null,l.prototype.modexPut=null,l.prototype.modexPart=null,l.prototype.modexUpdate=null,l.prototype.barrierEnter=null,l.prototype.barrierDone=
null,l.prototype.collectiveFailed=null,l.prototype.abort=null,l.prototype.processExit=null,l.prototype.railEvent=null,l.prototype.finalized=null,l.prototype.waitsAsk=
null,l.prototype.waitsRequest=null,l.prototype.waitsReport=null,l.prototype.barrierAsk=null,l.prototype.barrierMissing=null,l.prototype.standbyState=null,l.prototype.
standbyCall=null,l.prototype.processJoined=null,l.prototype.standbysEnd=null,l.prototype.unreachable=null,l.prototype.telemetry=null,l.prototype.railFault=null;
let e;return s.defineProperty(l.prototype,"body",{get:i.oneOfGetter(e=["challenge","hello","welcome","refused","ping","ack","modexPut","modexPart","modexUpdate",
"barrierEnter","barrierDone","collectiveFailed","abort","processExit","railEvent","finalized","waitsAsk","waitsRequest","waitsReport","barrierAsk","barrierMissi\
ng","standbyState","standbyCall","processJoined","standbysEnd","unreachable","telemetry","railFault"]),set:i.oneOfSetter(e)}),l.encode=function(n,t,o){if(t||(t=
$.create()),o===f&&(o=0),o>i.recursionLimit)throw d("max depth exceeded");if(n.sequence!=null&&s.hasOwnProperty.call(n,"sequence")&&(typeof n.sequence=="object"?
n.sequence.low||n.sequence.high:n.sequence!==0)&&t.uint32(8).uint64(n.sequence),n.acknowledged!=null&&s.hasOwnProperty.call(n,"acknowledged")&&(typeof n.acknowledged==
"object"?n.acknowledged.low||n.acknowledged.high:n.acknowledged!==0)&&t.uint32(16).uint64(n.acknowledged),n.challenge!=null&&s.hasOwnProperty.call(n,"challenge")&&
p.multirail.oob.v1.Challenge.encode(n.challenge,t.uint32(82).fork(),o+1).ldelim(),n.hello!=null&&s.hasOwnProperty.call(n,"hello")&&p.multirail.oob.v1.Hello.encode(
n.hello,t.uint32(90).fork(),o+1).ldelim(),n.welcome!=null&&s.hasOwnProperty.call(n,"welcome")&&p.multirail.oob.v1.Welcome.encode(n.welcome,t.uint32(98).fork(),o+
1).ldelim(),n.refused!=null&&s.hasOwnProperty.call(n,"refused")&&p.multirail.oob.v1.Refused.encode(n.refused,t.uint32(106).fork(),o+1).ldelim(),n.ping!=null&&s.
hasOwnProperty.call(n,"ping")&&p.multirail.oob.v1.Ping.encode(n.ping,t.uint32(114).fork(),o+1).ldelim(),n.ack!=null&&s.hasOwnProperty.call(n,"ack")&&p.multirail.
oob.v1.Ack.encode(n.ack,t.uint32(122).fork(),o+1).ldelim(),n.modexPut!=null&&s.hasOwnProperty.call(n,"modexPut")&&p.multirail.oob.v1.ModexPut.encode(n.modexPut,
t.uint32(162).fork(),o+1).ldelim(),n.modexPart!=null&&s.hasOwnProperty.call(n,"modexPart")&&p.multirail.oob.v1.ModexPart.encode(n.modexPart,t.uint32(170).fork(),
o+1).ldelim(),n.modexUpdate!=null&&s.hasOwnProperty.call(n,"modexUpdate")&&p.multirail.oob.v1.ModexUpdate.encode(n.modexUpdate,t.uint32(178).fork(),o+1).ldelim(),
n.barrierEnter!=null&&s.hasOwnProperty.call(n,"barrierEnter")&&p.multirail.oob.v1.BarrierEnter.encode(n.barrierEnter,t.uint32(186).fork(),o+1).ldelim(),n.barrierDone!=
null&&s.hasOwnProperty.call(n,"barrierDone")&&p.multirail.oob.v1.BarrierDone.encode(n.barrierDone,t.uint32(194).fork(),o+1).ldelim(),n.collectiveFailed!=null&&s.
hasOwnProperty.call(n,"collectiveFailed")&&p.multirail.oob.v1.CollectiveFailed.encode(n.collectiveFailed,t.uint32(202).fork(),o+1).ldelim(),n.abort!=null&&s.hasOwnProperty.
call(n,"abort")&&p.multirail.oob.v1.Abort.encode(n.abort,t.uint32(210).fork(),o+1).ldelim(),n.processExit!=null&&s.hasOwnProperty.call(n,"processExit")&&p.multirail.
oob.v1.ProcessExit.encode(n.processExit,t.uint32(218).fork(),o+1).ldelim(),n.railEvent!=null&&s.hasOwnProperty.call(n,"railEvent")&&p.multirail.oob.v1.RailEvent.
encode(n.railEvent,t.uint32(226).fork(),o+1).ldelim(),n.finalized!=null&&s.hasOwnProperty.call(n,"finalized")&&p.multirail.oob.v1.Finalized.encode(n.finalized,t.
uint32(234).fork(),o+1).ldelim(),n.waitsAsk!=null&&s.hasOwnProperty.call(n,"waitsAsk")&&p.multirail.oob.v1.WaitsAsk.encode(n.waitsAsk,t.uint32(242).fork(),o+1).
ldelim(),n.waitsRequest!=null&&s.hasOwnProperty.call(n,"waitsRequest")&&p.multirail.oob.v1.WaitsRequest.encode(n.waitsRequest,t.uint32(250).fork(),o+1).ldelim(),
n.waitsReport!=null&&s.hasOwnProperty.call(n,"waitsReport")&&p.multirail.oob.v1.WaitsReport.encode(n.waitsReport,t.uint32(258).fork(),o+1).ldelim(),n.barrierAsk!=
null&&s.hasOwnProperty.call(n,"barrierAsk")&&p.multirail.oob.v1.BarrierAsk.encode(n.barrierAsk,t.uint32(266).fork(),o+1).ldelim(),n.barrierMissing!=null&&s.hasOwnProperty.
call(n,"barrierMissing")&&p.multirail.oob.v1.BarrierMissing.encode(n.barrierMissing,t.uint32(274).fork(),o+1).ldelim(),n.standbyState!=null&&s.hasOwnProperty.call(
n,"standbyState")&&p.multirail.oob.v1.StandbyState.encode(n.standbyState,t.uint32(282).fork(),o+1).ldelim(),n.standbyCall!=null&&s.hasOwnProperty.call(n,"standb\
yCall")&&p.multirail.oob.v1.StandbyCall.encode(n.standbyCall,t.uint32(290).fork(),o+1).ldelim(),n.processJoined!=null&&s.hasOwnProperty.call(n,"processJoined")&&
p.multirail.oob.v1.ProcessJoined.encode(n.processJoined,t.uint32(298).fork(),o+1).ldelim(),n.standbysEnd!=null&&s.hasOwnProperty.call(n,"standbysEnd")&&p.multirail.
oob.v1.StandbysEnd.encode(n.standbysEnd,t.uint32(306).fork(),o+1).ldelim(),n.unreachable!=null&&s.hasOwnProperty.call(n,"unreachable")&&p.multirail.oob.v1.Unreachable.
encode(n.unreachable,t.uint32(314).fork(),o+1).ldelim(),n.telemetry!=null&&s.hasOwnProperty.call(n,"telemetry")&&p.multirail.oob.v1.Telemetry.encode(n.telemetry,
t.uint32(402).fork(),o+1).ldelim(),n.railFault!=null&&s.hasOwnProperty.call(n,"railFault")&&p.multirail.oob.v1.RailFault.encode(n.railFault,t.uint32(410).fork(),
o+1).ldelim(),n.$unknowns!=null&&s.hasOwnProperty.call(n,"$unknowns"))for(var c=0;c<n.$unknowns.length;++c)t.raw(n.$unknowns[c]);return t},l.decode=function(n,t,o,c,u){
if(n instanceof v||(n=v.create(n)),c===f&&(c=0),c>v.recursionLimit)throw d("max depth exceeded");var r,a,g;if(t===f)r=n.len;else{if(r=n.pos+t,r>n.len)throw x("i\
ndex out of range");t=n.len,n.len=r}for(a=u||new p.multirail.oob.v1.Envelope;n.pos<r;){var h=n.pos,b=n.tag();if(b===o){o=f;break}var j=b&7;switch(b>>>=3){case 1:{
if(j!==0)break;(typeof(g=n.uint64())=="object"?g.low||g.high:g!==0)?a.sequence=g:delete a.sequence;continue}case 2:{if(j!==0)break;(typeof(g=n.uint64())=="objec\
t"?g.low||g.high:g!==0)?a.acknowledged=g:delete a.acknowledged;continue}case 10:{if(j!==2)break;a.challenge=p.multirail.oob.v1.Challenge.decode(n,n.size(),f,c+1,
a.challenge),a.body="challenge";continue}case 11:{if(j!==2)break;a.hello=p.multirail.oob.v1.Hello.decode(n,n.size(),f,c+1,a.hello),a.body="hello";continue}case 12:{
if(j!==2)break;a.welcome=p.multirail.oob.v1.Welcome.decode(n,n.size(),f,c+1,a.welcome),a.body="welcome";continue}case 13:{if(j!==2)break;a.refused=p.multirail.oob.
v1.Refused.decode(n,n.size(),f,c+1,a.refused),a.body="refused";continue}case 14:{if(j!==2)break;a.ping=p.multirail.oob.v1.Ping.decode(n,n.size(),f,c+1,a.ping),a.
body="ping";continue}case 15:{if(j!==2)break;a.ack=p.multirail.oob.v1.Ack.decode(n,n.size(),f,c+1,a.ack),a.body="ack";continue}case 20:{if(j!==2)break;a.modexPut=
p.multirail.oob.v1.ModexPut.decode(n,n.size(),f,c+1,a.modexPut),a.body="modexPut";continue}case 21:{if(j!==2)break;a.modexPart=p.multirail.oob.v1.ModexPart.decode(
n,n.size(),f,c+1,a.modexPart),a.body="modexPart";continue}case 22:{if(j!==2)break;a.modexUpdate=p.multirail.oob.v1.ModexUpdate.decode(n,n.size(),f,c+1,a.modexUpdate),
a.body="modexUpdate";continue}case 23:{if(j!==2)break;a.barrierEnter=p.multirail.oob.v1.BarrierEnter.decode(n,n.size(),f,c+1,a.barrierEnter),a.body="barrierEnte\
r";continue}case 24:{if(j!==2)break;a.barrierDone=p.multirail.oob.v1.BarrierDone.decode(n,n.size(),f,c+1,a.barrierDone),a.body="barrierDone";continue}case 25:{if(j!==
2)break;a.collectiveFailed=p.multirail.oob.v1.CollectiveFailed.decode(n,n.size(),f,c+1,a.collectiveFailed),a.body="collectiveFailed";continue}case 26:{if(j!==2)
break;a.abort=p.multirail.oob.v1.Abort.decode(n,n.size(),f,c+1,a.abort),a.body="abort";continue}case 27:{if(j!==2)break;a.processExit=p.multirail.oob.v1.ProcessExit.
decode(n,n.size(),f,c+1,a.processExit),a.body="processExit";continue}case 28:{if(j!==2)break;a.railEvent=p.multirail.oob.v1.RailEvent.decode(n,n.size(),f,c+1,a.
railEvent),a.body="railEvent";continue}case 29:{if(j!==2)break;a.finalized=p.multirail.oob.v1.Finalized.decode(n,n.size(),f,c+1,a.finalized),a.body="finalized";
continue}case 30:{if(j!==2)break;a.waitsAsk=p.multirail.oob.v1.WaitsAsk.decode(n,n.size(),f,c+1,a.waitsAsk),a.body="waitsAsk";continue}case 31:{if(j!==2)break;a.
waitsRequest=p.multirail.oob.v1.WaitsRequest.decode(n,n.size(),f,c+1,a.waitsRequest),a.body="waitsRequest";continue}case 32:{if(j!==2)break;a.waitsReport=p.multirail.
oob.v1.WaitsReport.decode(n,n.size(),f,c+1,a.waitsReport),a.body="waitsReport";continue}case 33:{if(j!==2)break;a.barrierAsk=p.multirail.oob.v1.BarrierAsk.decode(
n,n.size(),f,c+1,a.barrierAsk),a.body="barrierAsk";continue}case 34:{if(j!==2)break;a.barrierMissing=p.multirail.oob.v1.BarrierMissing.decode(n,n.size(),f,c+1,a.
barrierMissing),a.body="barrierMissing";continue}case 35:{if(j!==2)break;a.standbyState=p.multirail.oob.v1.StandbyState.decode(n,n.size(),f,c+1,a.standbyState),
a.body="standbyState";continue}case 36:{if(j!==2)break;a.standbyCall=p.multirail.oob.v1.StandbyCall.decode(n,n.size(),f,c+1,a.standbyCall),a.body="standbyCall";
continue}case 37:{if(j!==2)break;a.processJoined=p.multirail.oob.v1.ProcessJoined.decode(n,n.size(),f,c+1,a.processJoined),a.body="processJoined";continue}case 38:{
if(j!==2)break;a.standbysEnd=p.multirail.oob.v1.StandbysEnd.decode(n,n.size(),f,c+1,a.standbysEnd),a.body="standbysEnd";continue}case 39:{if(j!==2)break;a.unreachable=
p.multirail.oob.v1.Unreachable.decode(n,n.size(),f,c+1,a.unreachable),a.body="unreachable";continue}case 50:{if(j!==2)break;a.telemetry=p.multirail.oob.v1.Telemetry.
decode(n,n.size(),f,c+1,a.telemetry),a.body="telemetry";continue}case 51:{if(j!==2)break;a.railFault=p.multirail.oob.v1.RailFault.decode(n,n.size(),f,c+1,a.railFault),
a.body="railFault";continue}}n.skipType(j,c,b),n.discardUnknown||(i.makeProp(a,"$unknowns",!1),(a.$unknowns||(a.$unknowns=[])).push(n.raw(h,n.pos)))}if(t!==f){if(n.
pos!==r)throw x("index out of range");n.len=t}if(o!==f)throw d("missing end group");return a},l.fromObject=function(n,t){if(n instanceof p.multirail.oob.v1.Envelope)
return n;if(!i.isObject(n))throw O(".multirail.oob.v1.Envelope: object expected");if(t===f&&(t=0),t>i.recursionLimit)throw d("max depth exceeded");var o=new p.multirail.
oob.v1.Envelope;if(n.sequence!=null&&(typeof n.sequence=="object"?n.sequence.low||n.sequence.high:k(n.sequence)!==0)&&(i.Long?o.sequence=i.Long.fromValue(n.sequence,
!0):typeof n.sequence=="string"?o.sequence=S(n.sequence,10):typeof n.sequence=="number"?o.sequence=n.sequence:typeof n.sequence=="object"&&(o.sequence=new i.LongBits(
n.sequence.low>>>0,n.sequence.high>>>0).toNumber(!0))),n.acknowledged!=null&&(typeof n.acknowledged=="object"?n.acknowledged.low||n.acknowledged.high:k(n.acknowledged)!==
0)&&(i.Long?o.acknowledged=i.Long.fromValue(n.acknowledged,!0):typeof n.acknowledged=="string"?o.acknowledged=S(n.acknowledged,10):typeof n.acknowledged=="numbe\
r"?o.acknowledged=n.acknowledged:typeof n.acknowledged=="object"&&(o.acknowledged=new i.LongBits(n.acknowledged.low>>>0,n.acknowledged.high>>>0).toNumber(!0))),
n.challenge!=null){if(!i.isObject(n.challenge))throw O(".multirail.oob.v1.Envelope.challenge: object expected");o.challenge=p.multirail.oob.v1.Challenge.fromObject(
n.challenge,t+1)}if(n.hello!=null){if(!i.isObject(n.hello))throw O(".multirail.oob.v1.Envelope.hello: object expected");o.hello=p.multirail.oob.v1.Hello.fromObject(
n.hello,t+1)}if(n.welcome!=null){if(!i.isObject(n.welcome))throw O(".multirail.oob.v1.Envelope.welcome: object expected");o.welcome=p.multirail.oob.v1.Welcome.fromObject(
n.welcome,t+1)}if(n.refused!=null){if(!i.isObject(n.refused))throw O(".multirail.oob.v1.Envelope.refused: object expected");o.refused=p.multirail.oob.v1.Refused.
fromObject(n.refused,t+1)}if(n.ping!=null){if(!i.isObject(n.ping))throw O(".multirail.oob.v1.Envelope.ping: object expected");o.ping=p.multirail.oob.v1.Ping.fromObject(
n.ping,t+1)}if(n.ack!=null){if(!i.isObject(n.ack))throw O(".multirail.oob.v1.Envelope.ack: object expected");o.ack=p.multirail.oob.v1.Ack.fromObject(n.ack,t+1)}
if(n.modexPut!=null){if(!i.isObject(n.modexPut))throw O(".multirail.oob.v1.Envelope.modexPut: object expected");o.modexPut=p.multirail.oob.v1.ModexPut.fromObject(
n.modexPut,t+1)}if(n.modexPart!=null){if(!i.isObject(n.modexPart))throw O(".multirail.oob.v1.Envelope.modexPart: object expected");o.modexPart=p.multirail.oob.v1.
ModexPart.fromObject(n.modexPart,t+1)}if(n.modexUpdate!=null){if(!i.isObject(n.modexUpdate))throw O(".multirail.oob.v1.Envelope.modexUpdate: object expected");o.
modexUpdate=p.multirail.oob.v1.ModexUpdate.fromObject(n.modexUpdate,t+1)}if(n.barrierEnter!=null){if(!i.isObject(n.barrierEnter))throw O(".multirail.oob.v1.Enve\
lope.barrierEnter: object expected");o.barrierEnter=p.multirail.oob.v1.BarrierEnter.fromObject(n.barrierEnter,t+1)}if(n.barrierDone!=null){if(!i.isObject(n.barrierDone))
throw O(".multirail.oob.v1.Envelope.barrierDone: object expected");o.barrierDone=p.multirail.oob.v1.BarrierDone.fromObject(n.barrierDone,t+1)}if(n.collectiveFailed!=
null){if(!i.isObject(n.collectiveFailed))throw O(".multirail.oob.v1.Envelope.collectiveFailed: object expected");o.collectiveFailed=p.multirail.oob.v1.CollectiveFailed.
fromObject(n.collectiveFailed,t+1)}if(n.abort!=null){if(!i.isObject(n.abort))throw O(".multirail.oob.v1.Envelope.abort: object expected");o.abort=p.multirail.oob.
v1.Abort.fromObject(n.abort,t+1)}if(n.processExit!=null){if(!i.isObject(n.processExit))throw O(".multirail.oob.v1.Envelope.processExit: object expected");o.processExit=
p.multirail.oob.v1.ProcessExit.fromObject(n.processExit,t+1)}if(n.railEvent!=null){if(!i.isObject(n.railEvent))throw O(".multirail.oob.v1.Envelope.railEvent: ob\
ject expected");o.railEvent=p.multirail.oob.v1.RailEvent.fromObject(n.railEvent,t+1)}if(n.finalized!=null){if(!i.isObject(n.finalized))throw O(".multirail.oob.v\
1.Envelope.finalized: object expected");o.finalized=p.multirail.oob.v1.Finalized.fromObject(n.finalized,t+1)}if(n.waitsAsk!=null){if(!i.isObject(n.waitsAsk))throw O(
".multirail.oob.v1.Envelope.waitsAsk: object expected");o.waitsAsk=p.multirail.oob.v1.WaitsAsk.fromObject(n.waitsAsk,t+1)}if(n.waitsRequest!=null){if(!i.isObject(
n.waitsRequest))throw O(".multirail.oob.v1.Envelope.waitsRequest: object expected");o.waitsRequest=p.multirail.oob.v1.WaitsRequest.fromObject(n.waitsRequest,t+1)}
if(n.waitsReport!=null){if(!i.isObject(n.waitsReport))throw O(".multirail.oob.v1.Envelope.waitsReport: object expected");o.waitsReport=p.multirail.oob.v1.WaitsReport.
fromObject(n.waitsReport,t+1)}if(n.barrierAsk!=null){if(!i.isObject(n.barrierAsk))throw O(".multirail.oob.v1.Envelope.barrierAsk: object expected");o.barrierAsk=
p.multirail.oob.v1.BarrierAsk.fromObject(n.barrierAsk,t+1)}if(n.barrierMissing!=null){if(!i.isObject(n.barrierMissing))throw O(".multirail.oob.v1.Envelope.barri\
erMissing: object expected");o.barrierMissing=p.multirail.oob.v1.BarrierMissing.fromObject(n.barrierMissing,t+1)}if(n.standbyState!=null){if(!i.isObject(n.standbyState))
throw O(".multirail.oob.v1.Envelope.standbyState: object expected");o.standbyState=p.multirail.oob.v1.StandbyState.fromObject(n.standbyState,t+1)}if(n.standbyCall!=
null){if(!i.isObject(n.standbyCall))throw O(".multirail.oob.v1.Envelope.standbyCall: object expected");o.standbyCall=p.multirail.oob.v1.StandbyCall.fromObject(n.
standbyCall,t+1)}if(n.processJoined!=null){if(!i.isObject(n.processJoined))throw O(".multirail.oob.v1.Envelope.processJoined: object expected");o.processJoined=
p.multirail.oob.v1.ProcessJoined.fromObject(n.processJoined,t+1)}if(n.standbysEnd!=null){if(!i.isObject(n.standbysEnd))throw O(".multirail.oob.v1.Envelope.stand\
bysEnd: object expected");o.standbysEnd=p.multirail.oob.v1.StandbysEnd.fromObject(n.standbysEnd,t+1)}if(n.unreachable!=null){if(!i.isObject(n.unreachable))throw O(
".multirail.oob.v1.Envelope.unreachable: object expected");o.unreachable=p.multirail.oob.v1.Unreachable.fromObject(n.unreachable,t+1)}if(n.telemetry!=null){if(!i.
isObject(n.telemetry))throw O(".multirail.oob.v1.Envelope.telemetry: object expected");o.telemetry=p.multirail.oob.v1.Telemetry.fromObject(n.telemetry,t+1)}if(n.
railFault!=null){if(!i.isObject(n.railFault))throw O(".multirail.oob.v1.Envelope.railFault: object expected");o.railFault=p.multirail.oob.v1.RailFault.fromObject(
n.railFault,t+1)}return o},l.toObject=function(n,t,o){if(t||(t={}),o===f&&(o=0),o>i.recursionLimit)throw d("max depth exceeded");var c={};if(t.defaults){if(i.Long){
var u=new i.Long(0,0,!0);c.sequence=t.longs===y?u.toString():t.longs===k?u.toNumber():typeof w<"u"&&t.longs===w?u.toBigInt():u}else c.sequence=t.longs===y?"0":typeof w<
"u"&&t.longs===w?w("0"):0;if(i.Long){var u=new i.Long(0,0,!0);c.acknowledged=t.longs===y?u.toString():t.longs===k?u.toNumber():typeof w<"u"&&t.longs===w?u.toBigInt():
u}else c.acknowledged=t.longs===y?"0":typeof w<"u"&&t.longs===w?w("0"):0}return n.sequence!=null&&s.hasOwnProperty.call(n,"sequence")&&(typeof w<"u"&&t.longs===
w?c.sequence=typeof n.sequence=="number"?w(n.sequence):i.Long.fromBits(n.sequence.low>>>0,n.sequence.high>>>0,!0).toBigInt():typeof n.sequence=="number"?c.sequence=
t.longs===y?y(n.sequence):n.sequence:c.sequence=t.longs===y?i.Long.prototype.toString.call(n.sequence):t.longs===k?new i.LongBits(n.sequence.low>>>0,n.sequence.
high>>>0).toNumber(!0):n.sequence),n.acknowledged!=null&&s.hasOwnProperty.call(n,"acknowledged")&&(typeof w<"u"&&t.longs===w?c.acknowledged=typeof n.acknowledged==
"number"?w(n.acknowledged):i.Long.fromBits(n.acknowledged.low>>>0,n.acknowledged.high>>>0,!0).toBigInt():typeof n.acknowledged=="number"?c.acknowledged=t.longs===
y?y(n.acknowledged):n.acknowledged:c.acknowledged=t.longs===y?i.Long.prototype.toString.call(n.acknowledged):t.longs===k?new i.LongBits(n.acknowledged.low>>>0,n.
acknowledged.high>>>0).toNumber(!0):n.acknowledged),n.challenge!=null&&s.hasOwnProperty.call(n,"challenge")&&(c.challenge=p.multirail.oob.v1.Challenge.toObject(
n.challenge,t,o+1),t.oneofs&&(c.body="challenge")),n.hello!=null&&s.hasOwnProperty.call(n,"hello")&&(c.hello=p.multirail.oob.v1.Hello.toObject(n.hello,t,o+1),t.
oneofs&&(c.body="hello")),n.welcome!=null&&s.hasOwnProperty.call(n,"welcome")&&(c.welcome=p.multirail.oob.v1.Welcome.toObject(n.welcome,t,o+1),t.oneofs&&(c.body=
"welcome")),n.refused!=null&&s.hasOwnProperty.call(n,"refused")&&(c.refused=p.multirail.oob.v1.Refused.toObject(n.refused,t,o+1),t.oneofs&&(c.body="refused")),n.
ping!=null&&s.hasOwnProperty.call(n,"ping")&&(c.ping=p.multirail.oob.v1.Ping.toObject(n.ping,t,o+1),t.oneofs&&(c.body="ping")),n.ack!=null&&s.hasOwnProperty.call(
n,"ack")&&(c.ack=p.multirail.oob.v1.Ack.toObject(n.ack,t,o+1),t.oneofs&&(c.body="ack")),n.modexPut!=null&&s.hasOwnProperty.call(n,"modexPut")&&(c.modexPut=p.multirail.
oob.v1.ModexPut.toObject(n.modexPut,t,o+1),t.oneofs&&(c.body="modexPut")),n.modexPart!=null&&s.hasOwnProperty.call(n,"modexPart")&&(c.modexPart=p.multirail.oob.
v1.ModexPart.toObject(n.modexPart,t,o+1),t.oneofs&&(c.body="modexPart")),n.modexUpdate!=null&&s.hasOwnProperty.call(n,"modexUpdate")&&(c.modexUpdate=p.multirail.
oob.v1.ModexUpdate.toObject(n.modexUpdate,t,o+1),t.oneofs&&(c.body="modexUpdate")),n.barrierEnter!=null&&s.hasOwnProperty.call(n,"barrierEnter")&&(c.barrierEnter=
p.multirail.oob.v1.BarrierEnter.toObject(n.barrierEnter,t,o+1),t.oneofs&&(c.body="barrierEnter")),n.barrierDone!=null&&s.hasOwnProperty.call(n,"barrierDone")&&(c.
barrierDone=p.multirail.oob.v1.BarrierDone.toObject(n.barrierDone,t,o+1),t.oneofs&&(c.body="barrierDone")),n.collectiveFailed!=null&&s.hasOwnProperty.call(n,"co\
llectiveFailed")&&(c.collectiveFailed=p.multirail.oob.v1.CollectiveFailed.toObject(n.collectiveFailed,t,o+1),t.oneofs&&(c.body="collectiveFailed")),n.abort!=null&&
s.hasOwnProperty.call(n,"abort")&&(c.abort=p.multirail.oob.v1.Abort.toObject(n.abort,t,o+1),t.oneofs&&(c.body="abort")),n.processExit!=null&&s.hasOwnProperty.call(
n,"processExit")&&(c.processExit=p.multirail.oob.v1.ProcessExit.toObject(n.processExit,t,o+1),t.oneofs&&(c.body="processExit")),n.railEvent!=null&&s.hasOwnProperty.
call(n,"railEvent")&&(c.railEvent=p.multirail.oob.v1.RailEvent.toObject(n.railEvent,t,o+1),t.oneofs&&(c.body="railEvent")),n.finalized!=null&&s.hasOwnProperty.call(
n,"finalized")&&(c.finalized=p.multirail.oob.v1.Finalized.toObject(n.finalized,t,o+1),t.oneofs&&(c.body="finalized")),n.waitsAsk!=null&&s.hasOwnProperty.call(n,
"waitsAsk")&&(c.waitsAsk=p.multirail.oob.v1.WaitsAsk.toObject(n.waitsAsk,t,o+1),t.oneofs&&(c.body="waitsAsk")),n.waitsRequest!=null&&s.hasOwnProperty.call(n,"wa\
itsRequest")&&(c.waitsRequest=p.multirail.oob.v1.WaitsRequest.toObject(n.waitsRequest,t,o+1),t.oneofs&&(c.body="waitsRequest")),n.waitsReport!=null&&s.hasOwnProperty.
call(n,"waitsReport")&&(c.waitsReport=p.multirail.oob.v1.WaitsReport.toObject(n.waitsReport,t,o+1),t.oneofs&&(c.body="waitsReport")),n.barrierAsk!=null&&s.hasOwnProperty.
call(n,"barrierAsk")&&(c.barrierAsk=p.multirail.oob.v1.BarrierAsk.toObject(n.barrierAsk,t,o+1),t.oneofs&&(c.body="barrierAsk")),n.barrierMissing!=null&&s.hasOwnProperty.
call(n,"barrierMissing")&&(c.barrierMissing=p.multirail.oob.v1.BarrierMissing.toObject(n.barrierMissing,t,o+1),t.oneofs&&(c.body="barrierMissing")),n.standbyState!=
null&&s.hasOwnProperty.call(n,"standbyState")&&(c.standbyState=p.multirail.oob.v1.StandbyState.toObject(n.standbyState,t,o+1),t.oneofs&&(c.body="standbyState")),
n.standbyCall!=null&&s.hasOwnProperty.call(n,"standbyCall")&&(c.standbyCall=p.multirail.oob.v1.StandbyCall.toObject(n.standbyCall,t,o+1),t.oneofs&&(c.body="stan\
dbyCall")),n.processJoined!=null&&s.hasOwnProperty.call(n,"processJoined")&&(c.processJoined=p.multirail.oob.v1.ProcessJoined.toObject(n.processJoined,t,o+1),t.
oneofs&&(c.body="processJoined")),n.standbysEnd!=null&&s.hasOwnProperty.call(n,"standbysEnd")&&(c.standbysEnd=p.multirail.oob.v1.StandbysEnd.toObject(n.standbysEnd,
t,o+1),t.oneofs&&(c.body="standbysEnd")),n.unreachable!=null&&s.hasOwnProperty.call(n,"unreachable")&&(c.unreachable=p.multirail.oob.v1.Unreachable.toObject(n.unreachable,
t,o+1),t.oneofs&&(c.body="unreachable")),n.telemetry!=null&&s.hasOwnProperty.call(n,"telemetry")&&(c.telemetry=p.multirail.oob.v1.Telemetry.toObject(n.telemetry,
t,o+1),t.oneofs&&(c.body="telemetry")),n.railFault!=null&&s.hasOwnProperty.call(n,"railFault")&&(c.railFault=p.multirail.oob.v1.RailFault.toObject(n.railFault,t,
o+1),t.oneofs&&(c.body="railFault")),c},l.prototype.toJSON=function(){return l.toObject(this,B.util.toJSONOptions)},l})(),L.Challenge=(function(){const l=function(e){
if(e)for(var n=s.keys(e),t=0;t<n.length;++t)e[n[t]]!=null&&n[t]!=="__proto__"&&(this[n[t]]=e[n[t]])};return l.prototype.version=0,l.prototype.nonce=i.newBuffer(
[]),l.prototype.jobId="",l.encode=function(e,n,t){if(n||(n=$.create()),t===f&&(t=0),t>i.recursionLimit)throw d("max depth exceeded");if(e.version!=null&&s.hasOwnProperty.
call(e,"version")&&e.version!==0&&n.uint32(8).uint32(e.version),e.nonce!=null&&s.hasOwnProperty.call(e,"nonce")&&e.nonce.length&&n.uint32(18).bytes(e.nonce),e.jobId!=
null&&s.hasOwnProperty.call(e,"jobId")&&e.jobId!==""&&n.uint32(26).string(e.jobId),e.$unknowns!=null&&s.hasOwnProperty.call(e,"$unknowns"))for(var o=0;o<e.$unknowns.
length;++o)n.raw(e.$unknowns[o]);return n},l.decode=function(e,n,t,o,c){if(e instanceof v||(e=v.create(e)),o===f&&(o=0),o>v.recursionLimit)throw d("max depth ex\
ceeded");var u,r,a;if(n===f)u=e.len;else{if(u=e.pos+n,u>e.len)throw x("index out of range");n=e.len,e.len=u}for(r=c||new p.multirail.oob.v1.Challenge;e.pos<u;){
var g=e.pos,h=e.tag();if(h===t){t=f;break}var b=h&7;switch(h>>>=3){case 1:{if(b!==0)break;(a=e.uint32())?r.version=a:delete r.version;continue}case 2:{if(b!==2)
break;(a=e.bytes()).length?r.nonce=a:delete r.nonce;continue}case 3:{if(b!==2)break;(a=e.stringVerify()).length?r.jobId=a:delete r.jobId;continue}}e.skipType(b,
o,h),e.discardUnknown||(i.makeProp(r,"$unknowns",!1),(r.$unknowns||(r.$unknowns=[])).push(e.raw(g,e.pos)))}if(n!==f){if(e.pos!==u)throw x("index out of range");
e.len=n}if(t!==f)throw d("missing end group");return r},l.fromObject=function(e,n){if(e instanceof p.multirail.oob.v1.Challenge)return e;if(!i.isObject(e))throw O(
".multirail.oob.v1.Challenge: object expected");if(n===f&&(n=0),n>i.recursionLimit)throw d("max depth exceeded");var t=new p.multirail.oob.v1.Challenge;return e.
version!=null&&k(e.version)!==0&&(t.version=e.version>>>0),e.nonce!=null&&e.nonce.length&&(typeof e.nonce=="string"?i.base64.decode(e.nonce,t.nonce=i.newBuffer(
i.base64.length(e.nonce)),0):e.nonce.length>=0&&(t.nonce=e.nonce)),e.jobId!=null&&(typeof e.jobId!="string"||e.jobId.length)&&(t.jobId=y(e.jobId)),t},l.toObject=
function(e,n,t){if(n||(n={}),t===f&&(t=0),t>i.recursionLimit)throw d("max depth exceeded");var o={};return n.defaults&&(o.version=0,n.bytes===y?o.nonce="":(o.nonce=
[],n.bytes!==P&&(o.nonce=i.newBuffer(o.nonce))),o.jobId=""),e.version!=null&&s.hasOwnProperty.call(e,"version")&&(o.version=e.version),e.nonce!=null&&s.hasOwnProperty.
call(e,"nonce")&&(o.nonce=n.bytes===y?i.base64.encode(e.nonce,0,e.nonce.length):n.bytes===P?P.prototype.slice.call(e.nonce):e.nonce),e.jobId!=null&&s.hasOwnProperty.
call(e,"jobId")&&(o.jobId=e.jobId),o},l.prototype.toJSON=function(){return l.toObject(this,B.util.toJSONOptions)},l})(),L.Hello=(function(){const l=function(e){
if(e)for(var n=s.keys(e),t=0;t<n.length;++t)e[n[t]]!=null&&n[t]!=="__proto__"&&(this[n[t]]=e[n[t]])};return l.prototype.version=0,l.prototype.jobId="",l.prototype.
rank=0,l.prototype.size=0,l.prototype.incarnation=i.Long?i.Long.fromBits(0,0,!0):0,l.prototype.pid=0,l.prototype.hostId="",l.prototype.nonce=i.newBuffer([]),l.prototype.
received=i.Long?i.Long.fromBits(0,0,!0):0,l.prototype.proof=i.newBuffer([]),l.prototype.lifeline=!1,l.prototype.join="",l.encode=function(e,n,t){if(n||(n=$.create()),
t===f&&(t=0),t>i.recursionLimit)throw d("max depth exceeded");if(e.version!=null&&s.hasOwnProperty.call(e,"version")&&e.version!==0&&n.uint32(8).uint32(e.version),
e.jobId!=null&&s.hasOwnProperty.call(e,"jobId")&&e.jobId!==""&&n.uint32(18).string(e.jobId),e.rank!=null&&s.hasOwnProperty.call(e,"rank")&&e.rank!==0&&n.uint32(
24).uint32(e.rank),e.size!=null&&s.hasOwnProperty.call(e,"size")&&e.size!==0&&n.uint32(32).uint32(e.size),e.incarnation!=null&&s.hasOwnProperty.call(e,"incarnat\
ion")&&(typeof e.incarnation=="object"?e.incarnation.low||e.incarnation.high:e.incarnation!==0)&&n.uint32(40).uint64(e.incarnation),e.pid!=null&&s.hasOwnProperty.
call(e,"pid")&&e.pid!==0&&n.uint32(48).uint32(e.pid),e.hostId!=null&&s.hasOwnProperty.call(e,"hostId")&&e.hostId!==""&&n.uint32(58).string(e.hostId),e.nonce!=null&&
s.hasOwnProperty.call(e,"nonce")&&e.nonce.length&&n.uint32(66).bytes(e.nonce),e.received!=null&&s.hasOwnProperty.call(e,"received")&&(typeof e.received=="object"?
e.received.low||e.received.high:e.received!==0)&&n.uint32(72).uint64(e.received),e.proof!=null&&s.hasOwnProperty.call(e,"proof")&&e.proof.length&&n.uint32(82).bytes(
e.proof),e.lifeline!=null&&s.hasOwnProperty.call(e,"lifeline")&&e.lifeline!==!1&&n.uint32(88).bool(e.lifeline),e.join!=null&&s.hasOwnProperty.call(e,"join")&&e.
join!==""&&n.uint32(98).string(e.join),e.$unknowns!=null&&s.hasOwnProperty.call(e,"$unknowns"))for(var o=0;o<e.$unknowns.length;++o)n.raw(e.$unknowns[o]);return n},
l.decode=function(e,n,t,o,c){if(e instanceof v||(e=v.create(e)),o===f&&(o=0),o>v.recursionLimit)throw d("max depth exceeded");var u,r,a;if(n===f)u=e.len;else{if(u=
e.pos+n,u>e.len)throw x("index out of range");n=e.len,e.len=u}for(r=c||new p.multirail.oob.v1.Hello;e.pos<u;){var g=e.pos,h=e.tag();if(h===t){t=f;break}var b=h&
7;switch(h>>>=3){case 1:{if(b!==0)break;(a=e.uint32())?r.version=a:delete r.version;continue}case 2:{if(b!==2)break;(a=e.stringVerify()).length?r.jobId=a:delete r.
jobId;continue}case 3:{if(b!==0)break;(a=e.uint32())?r.rank=a:delete r.rank;continue}case 4:{if(b!==0)break;(a=e.uint32())?r.size=a:delete r.size;continue}case 5:{
if(b!==0)break;(typeof(a=e.uint64())=="object"?a.low||a.high:a!==0)?r.incarnation=a:delete r.incarnation;continue}case 6:{if(b!==0)break;(a=e.uint32())?r.pid=a:
delete r.pid;continue}case 7:{if(b!==2)break;(a=e.stringVerify()).length?r.hostId=a:delete r.hostId;continue}case 8:{if(b!==2)break;(a=e.bytes()).length?r.nonce=
a:delete r.nonce;continue}case 9:{if(b!==0)break;(typeof(a=e.uint64())=="object"?a.low||a.high:a!==0)?r.received=a:delete r.received;continue}case 10:{if(b!==2)
break;(a=e.bytes()).length?r.proof=a:delete r.proof;continue}case 11:{if(b!==0)break;(a=e.bool())?r.lifeline=a:delete r.lifeline;continue}case 12:{if(b!==2)break;
(a=e.stringVerify()).length?r.join=a:delete r.join;continue}}e.skipType(b,o,h),e.discardUnknown||(i.makeProp(r,"$unknowns",!1),(r.$unknowns||(r.$unknowns=[])).push(
e.raw(g,e.pos)))}if(n!==f){if(e.pos!==u)throw x("index out of range");e.len=n}if(t!==f)throw d("missing end group");return r},l.fromObject=function(e,n){if(e instanceof
p.multirail.oob.v1.Hello)return e;if(!i.isObject(e))throw O(".multirail.oob.v1.Hello: object expected");if(n===f&&(n=0),n>i.recursionLimit)throw d("max depth ex\
ceeded");var t=new p.multirail.oob.v1.Hello;return e.version!=null&&k(e.version)!==0&&(t.version=e.version>>>0),e.jobId!=null&&(typeof e.jobId!="string"||e.jobId.
length)&&(t.jobId=y(e.jobId)),e.rank!=null&&k(e.rank)!==0&&(t.rank=e.rank>>>0),e.size!=null&&k(e.size)!==0&&(t.size=e.size>>>0),e.incarnation!=null&&(typeof e.incarnation==
"object"?e.incarnation.low||e.incarnation.high:k(e.incarnation)!==0)&&(i.Long?t.incarnation=i.Long.fromValue(e.incarnation,!0):typeof e.incarnation=="string"?t.
incarnation=S(e.incarnation,10):typeof e.incarnation=="number"?t.incarnation=e.incarnation:typeof e.incarnation=="object"&&(t.incarnation=new i.LongBits(e.incarnation.
low>>>0,e.incarnation.high>>>0).toNumber(!0))),e.pid!=null&&k(e.pid)!==0&&(t.pid=e.pid>>>0),e.hostId!=null&&(typeof e.hostId!="string"||e.hostId.length)&&(t.hostId=
y(e.hostId)),e.nonce!=null&&e.nonce.length&&(typeof e.nonce=="string"?i.base64.decode(e.nonce,t.nonce=i.newBuffer(i.base64.length(e.nonce)),0):e.nonce.length>=0&&
(t.nonce=e.nonce)),e.received!=null&&(typeof e.received=="object"?e.received.low||e.received.high:k(e.received)!==0)&&(i.Long?t.received=i.Long.fromValue(e.received,
!0):typeof e.received=="string"?t.received=S(e.received,10):typeof e.received=="number"?t.received=e.received:typeof e.received=="object"&&(t.received=new i.LongBits(
e.received.low>>>0,e.received.high>>>0).toNumber(!0))),e.proof!=null&&e.proof.length&&(typeof e.proof=="string"?i.base64.decode(e.proof,t.proof=i.newBuffer(i.base64.
length(e.proof)),0):e.proof.length>=0&&(t.proof=e.proof)),e.lifeline!=null&&e.lifeline&&(t.lifeline=m(e.lifeline)),e.join!=null&&(typeof e.join!="string"||e.join.
length)&&(t.join=y(e.join)),t},l.toObject=function(e,n,t){if(n||(n={}),t===f&&(t=0),t>i.recursionLimit)throw d("max depth exceeded");var o={};if(n.defaults){if(o.
version=0,o.jobId="",o.rank=0,o.size=0,i.Long){var c=new i.Long(0,0,!0);o.incarnation=n.longs===y?c.toString():n.longs===k?c.toNumber():typeof w<"u"&&n.longs===
w?c.toBigInt():c}else o.incarnation=n.longs===y?"0":typeof w<"u"&&n.longs===w?w("0"):0;if(o.pid=0,o.hostId="",n.bytes===y?o.nonce="":(o.nonce=[],n.bytes!==P&&(o.
nonce=i.newBuffer(o.nonce))),i.Long){var c=new i.Long(0,0,!0);o.received=n.longs===y?c.toString():n.longs===k?c.toNumber():typeof w<"u"&&n.longs===w?c.toBigInt():
c}else o.received=n.longs===y?"0":typeof w<"u"&&n.longs===w?w("0"):0;n.bytes===y?o.proof="":(o.proof=[],n.bytes!==P&&(o.proof=i.newBuffer(o.proof))),o.lifeline=
!1,o.join=""}return e.version!=null&&s.hasOwnProperty.call(e,"version")&&(o.version=e.version),e.jobId!=null&&s.hasOwnProperty.call(e,"jobId")&&(o.jobId=e.jobId),
e.rank!=null&&s.hasOwnProperty.call(e,"rank")&&(o.rank=e.rank),e.size!=null&&s.hasOwnProperty.call(e,"size")&&(o.size=e.size),e.incarnation!=null&&s.hasOwnProperty.
call(e,"incarnation")&&(typeof w<"u"&&n.longs===w?o.incarnation=typeof e.incarnation=="number"?w(e.incarnation):i.Long.fromBits(e.incarnation.low>>>0,e.incarnation.
high>>>0,!0).toBigInt():typeof e.incarnation=="number"?o.incarnation=n.longs===y?y(e.incarnation):e.incarnation:o.incarnation=n.longs===y?i.Long.prototype.toString.
call(e.incarnation):n.longs===k?new i.LongBits(e.incarnation.low>>>0,e.incarnation.high>>>0).toNumber(!0):e.incarnation),e.pid!=null&&s.hasOwnProperty.call(e,"p\
id")&&(o.pid=e.pid),e.hostId!=null&&s.hasOwnProperty.call(e,"hostId")&&(o.hostId=e.hostId),e.nonce!=null&&s.hasOwnProperty.call(e,"nonce")&&(o.nonce=n.bytes===y?
i.base64.encode(e.nonce,0,e.nonce.length):n.bytes===P?P.prototype.slice.call(e.nonce):e.nonce),e.received!=null&&s.hasOwnProperty.call(e,"received")&&(typeof w<
"u"&&n.longs===w?o.received=typeof e.received=="number"?w(e.received):i.Long.fromBits(e.received.low>>>0,e.received.high>>>0,!0).toBigInt():typeof e.received=="\
number"?o.received=n.longs===y?y(e.received):e.received:o.received=n.longs===y?i.Long.prototype.toString.call(e.received):n.longs===k?new i.LongBits(e.received.
low>>>0,e.received.high>>>0).toNumber(!0):e.received),e.proof!=null&&s.hasOwnProperty.call(e,"proof")&&(o.proof=n.bytes===y?i.base64.encode(e.proof,0,e.proof.length):
n.bytes===P?P.prototype.slice.call(e.proof):e.proof),e.lifeline!=null&&s.hasOwnProperty.call(e,"lifeline")&&(o.lifeline=e.lifeline),e.join!=null&&s.hasOwnProperty.
call(e,"join")&&(o.join=e.join),o},l.prototype.toJSON=function(){return l.toObject(this,B.util.toJSONOptions)},l})(),L.Welcome=(function(){const l=function(e){if(e)
for(var n=s.keys(e),t=0;t<n.length;++t)e[n[t]]!=null&&n[t]!=="__proto__"&&(this[n[t]]=e[n[t]])};return l.prototype.received=i.Long?i.Long.fromBits(0,0,!0):0,l.prototype.
proof=i.newBuffer([]),l.prototype.number=0,l.prototype.size=0,l.encode=function(e,n,t){if(n||(n=$.create()),t===f&&(t=0),t>i.recursionLimit)throw d("max depth e\
xceeded");if(e.received!=null&&s.hasOwnProperty.call(e,"received")&&(typeof e.received=="object"?e.received.low||e.received.high:e.received!==0)&&n.uint32(8).uint64(
e.received),e.proof!=null&&s.hasOwnProperty.call(e,"proof")&&e.proof.length&&n.uint32(18).bytes(e.proof),e.number!=null&&s.hasOwnProperty.call(e,"number")&&e.number!==
0&&n.uint32(24).uint32(e.number),e.size!=null&&s.hasOwnProperty.call(e,"size")&&e.size!==0&&n.uint32(32).uint32(e.size),e.$unknowns!=null&&s.hasOwnProperty.call(
e,"$unknowns"))for(var o=0;o<e.$unknowns.length;++o)n.raw(e.$unknowns[o]);return n},l.decode=function(e,n,t,o,c){if(e instanceof v||(e=v.create(e)),o===f&&(o=0),
o>v.recursionLimit)throw d("max depth exceeded");var u,r,a;if(n===f)u=e.len;else{if(u=e.pos+n,u>e.len)throw x("index out of range");n=e.len,e.len=u}for(r=c||new p.
multirail.oob.v1.Welcome;e.pos<u;){var g=e.pos,h=e.tag();if(h===t){t=f;break}var b=h&7;switch(h>>>=3){case 1:{if(b!==0)break;(typeof(a=e.uint64())=="object"?a.low||
a.high:a!==0)?r.received=a:delete r.received;continue}case 2:{if(b!==2)break;(a=e.bytes()).length?r.proof=a:delete r.proof;continue}case 3:{if(b!==0)break;(a=e.
uint32())?r.number=a:delete r.number;continue}case 4:{if(b!==0)break;(a=e.uint32())?r.size=a:delete r.size;continue}}e.skipType(b,o,h),e.discardUnknown||(i.makeProp(
r,"$unknowns",!1),(r.$unknowns||(r.$unknowns=[])).push(e.raw(g,e.pos)))}if(n!==f){if(e.pos!==u)throw x("index out of range");e.len=n}if(t!==f)throw d("missing e\
nd group");return r},l.fromObject=function(e,n){if(e instanceof p.multirail.oob.v1.Welcome)return e;if(!i.isObject(e))throw O(".multirail.oob.v1.Welcome: object\
 expected");if(n===f&&(n=0),n>i.recursionLimit)throw d("max depth exceeded");var t=new p.multirail.oob.v1.Welcome;return e.received!=null&&(typeof e.received=="\
object"?e.received.low||e.received.high:k(e.received)!==0)&&(i.Long?t.received=i.Long.fromValue(e.received,!0):typeof e.received=="string"?t.received=S(e.received,
10):typeof e.received=="number"?t.received=e.received:typeof e.received=="object"&&(t.received=new i.LongBits(e.received.low>>>0,e.received.high>>>0).toNumber(!0))),
e.proof!=null&&e.proof.length&&(typeof e.proof=="string"?i.base64.decode(e.proof,t.proof=i.newBuffer(i.base64.length(e.proof)),0):e.proof.length>=0&&(t.proof=e.
proof)),e.number!=null&&k(e.number)!==0&&(t.number=e.number>>>0),e.size!=null&&k(e.size)!==0&&(t.size=e.size>>>0),t},l.toObject=function(e,n,t){if(n||(n={}),t===
f&&(t=0),t>i.recursionLimit)throw d("max depth exceeded");var o={};if(n.defaults){if(i.Long){var c=new i.Long(0,0,!0);o.received=n.longs===y?c.toString():n.longs===
k?c.toNumber():typeof w<"u"&&n.longs===w?c.toBigInt():c}else o.received=n.longs===y?"0":typeof w<"u"&&n.longs===w?w("0"):0;n.bytes===y?o.proof="":(o.proof=[],n.
bytes!==P&&(o.proof=i.newBuffer(o.proof))),o.number=0,o.size=0}return e.received!=null&&s.hasOwnProperty.call(e,"received")&&(typeof w<"u"&&n.longs===w?o.received=
typeof e.received=="number"?w(e.received):i.Long.fromBits(e.received.low>>>0,e.received.high>>>0,!0).toBigInt():typeof e.received=="number"?o.received=n.longs===
y?y(e.received):e.received:o.received=n.longs===y?i.Long.prototype.toString.call(e.received):n.longs===k?new i.LongBits(e.received.low>>>0,e.received.high>>>0).
toNumber(!0):e.received),e.proof!=null&&s.hasOwnProperty.call(e,"proof")&&(o.proof=n.bytes===y?i.base64.encode(e.proof,0,e.proof.length):n.bytes===P?P.prototype.
slice.call(e.proof):e.proof),e.number!=null&&s.hasOwnProperty.call(e,"number")&&(o.number=e.number),e.size!=null&&s.hasOwnProperty.call(e,"size")&&(o.size=e.size),
o},l.prototype.toJSON=function(){return l.toObject(this,B.util.toJSONOptions)},l})(),L.Refused=(function(){const l=function(e){if(e)for(var n=s.keys(e),t=0;t<n.
length;++t)e[n[t]]!=null&&n[t]!=="__proto__"&&(this[n[t]]=e[n[t]])};return l.prototype.reason="",l.prototype.text="",l.encode=function(e,n,t){if(n||(n=$.create()),
t===f&&(t=0),t>i.recursionLimit)throw d("max depth exceeded");if(e.reason!=null&&s.hasOwnProperty.call(e,"reason")&&e.reason!==""&&n.uint32(10).string(e.reason),
e.text!=null&&s.hasOwnProperty.call(e,"text")&&e.text!==""&&n.uint32(18).string(e.text),e.$unknowns!=null&&s.hasOwnProperty.call(e,"$unknowns"))for(var o=0;o<e.
$unknowns.length;++o)n.raw(e.$unknowns[o]);return n},l.decode=function(e,n,t,o,c){if(e instanceof v||(e=v.create(e)),o===f&&(o=0),o>v.recursionLimit)throw d("ma\
x depth exceeded");var u,r,a;if(n===f)u=e.len;else{if(u=e.pos+n,u>e.len)throw x("index out of range");n=e.len,e.len=u}for(r=c||new p.multirail.oob.v1.Refused;e.
pos<u;){var g=e.pos,h=e.tag();if(h===t){t=f;break}var b=h&7;switch(h>>>=3){case 1:{if(b!==2)break;(a=e.stringVerify()).length?r.reason=a:delete r.reason;continue}case 2:{
if(b!==2)break;(a=e.stringVerify()).length?r.text=a:delete r.text;continue}}e.skipType(b,o,h),e.discardUnknown||(i.makeProp(r,"$unknowns",!1),(r.$unknowns||(r.$unknowns=
[])).push(e.raw(g,e.pos)))}if(n!==f){if(e.pos!==u)throw x("index out of range");e.len=n}if(t!==f)throw d("missing end group");return r},l.fromObject=function(e,n){
if(e instanceof p.multirail.oob.v1.Refused)return e;if(!i.isObject(e))throw O(".multirail.oob.v1.Refused: object expected");if(n===f&&(n=0),n>i.recursionLimit)throw d(
"max depth exceeded");var t=new p.multirail.oob.v1.Refused;return e.reason!=null&&(typeof e.reason!="string"||e.reason.length)&&(t.reason=y(e.reason)),e.text!=null&&
(typeof e.text!="string"||e.text.length)&&(t.text=y(e.text)),t},l.toObject=function(e,n,t){if(n||(n={}),t===f&&(t=0),t>i.recursionLimit)throw d("max depth excee\
ded");var o={};return n.defaults&&(o.reason="",o.text=""),e.reason!=null&&s.hasOwnProperty.call(e,"reason")&&(o.reason=e.reason),e.text!=null&&s.hasOwnProperty.
call(e,"text")&&(o.text=e.text),o},l.prototype.toJSON=function(){return l.toObject(this,B.util.toJSONOptions)},l})(),L.Ping=(function(){const l=function(e){if(e)
for(var n=s.keys(e),t=0;t<n.length;++t)e[n[t]]!=null&&n[t]!=="__proto__"&&(this[n[t]]=e[n[t]])};return l.encode=function(e,n,t){if(n||(n=$.create()),t===f&&(t=0),
t>i.recursionLimit)throw d("max depth exceeded");if(e.$unknowns!=null&&s.hasOwnProperty.call(e,"$unknowns"))for(var o=0;o<e.$unknowns.length;++o)n.raw(e.$unknowns[o]);
return n},l.decode=function(e,n,t,o,c){if(e instanceof v||(e=v.create(e)),o===f&&(o=0),o>v.recursionLimit)throw d("max depth exceeded");var u,r;if(n===f)u=e.len;else{
if(u=e.pos+n,u>e.len)throw x("index out of range");n=e.len,e.len=u}for(r=c||new p.multirail.oob.v1.Ping;e.pos<u;){var a=e.pos,g=e.tag();if(g===t){t=f;break}e.skipType(
g&7,o,g),e.discardUnknown||(i.makeProp(r,"$unknowns",!1),(r.$unknowns||(r.$unknowns=[])).push(e.raw(a,e.pos)))}if(n!==f){if(e.pos!==u)throw x("index out of rang\
e");e.len=n}if(t!==f)throw d("missing end group");return r},l.fromObject=function(e,n){if(e instanceof p.multirail.oob.v1.Ping)return e;if(!i.isObject(e))throw O(
".multirail.oob.v1.Ping: object expected");if(n===f&&(n=0),n>i.recursionLimit)throw d("max depth exceeded");return new p.multirail.oob.v1.Ping},l.toObject=function(){
return{}},l.prototype.toJSON=function(){return l.toObject(this,B.util.toJSONOptions)},l})(),L.Ack=(function(){const l=function(e){if(e)for(var n=s.keys(e),t=0;t<
n.length;++t)e[n[t]]!=null&&n[t]!=="__proto__"&&(this[n[t]]=e[n[t]])};return l.encode=function(e,n,t){if(n||(n=$.create()),t===f&&(t=0),t>i.recursionLimit)throw d(
"max depth exceeded");if(e.$unknowns!=null&&s.hasOwnProperty.call(e,"$unknowns"))for(var o=0;o<e.$unknowns.length;++o)n.raw(e.$unknowns[o]);return n},l.decode=function(e,n,t,o,c){
if(e instanceof v||(e=v.create(e)),o===f&&(o=0),o>v.recursionLimit)throw d("max depth exceeded");var u,r;if(n===f)u=e.len;else{if(u=e.pos+n,u>e.len)throw x("ind\
ex out of range");n=e.len,e.len=u}for(r=c||new p.multirail.oob.v1.Ack;e.pos<u;){var a=e.pos,g=e.tag();if(g===t){t=f;break}e.skipType(g&7,o,g),e.discardUnknown||
(i.makeProp(r,"$unknowns",!1),(r.$unknowns||(r.$unknowns=[])).push(e.raw(a,e.pos)))}if(n!==f){if(e.pos!==u)throw x("index out of range");e.len=n}if(t!==f)throw d(
"missing end group");return r},l.fromObject=function(e,n){if(e instanceof p.multirail.oob.v1.Ack)return e;if(!i.isObject(e))throw O(".multirail.oob.v1.Ack: obje\
ct expected");if(n===f&&(n=0),n>i.recursionLimit)throw d("max depth exceeded");return new p.multirail.oob.v1.Ack},l.toObject=function(){return{}},l.prototype.toJSON=
function(){return l.toObject(this,B.util.toJSONOptions)},l})(),L.ModexPut=(function(){const l=function(e){if(e)for(var n=s.keys(e),t=0;t<n.length;++t)e[n[t]]!=null&&
n[t]!=="__proto__"&&(this[n[t]]=e[n[t]])};return l.prototype.json=i.newBuffer([]),l.encode=function(e,n,t){if(n||(n=$.create()),t===f&&(t=0),t>i.recursionLimit)
throw d("max depth exceeded");if(e.json!=null&&s.hasOwnProperty.call(e,"json")&&e.json.length&&n.uint32(10).bytes(e.json),e.$unknowns!=null&&s.hasOwnProperty.call(
e,"$unknowns"))for(var o=0;o<e.$unknowns.length;++o)n.raw(e.$unknowns[o]);return n},l.decode=function(e,n,t,o,c){if(e instanceof v||(e=v.create(e)),o===f&&(o=0),
o>v.recursionLimit)throw d("max depth exceeded");var u,r,a;if(n===f)u=e.len;else{if(u=e.pos+n,u>e.len)throw x("index out of range");n=e.len,e.len=u}for(r=c||new p.
multirail.oob.v1.ModexPut;e.pos<u;){var g=e.pos,h=e.tag();if(h===t){t=f;break}var b=h&7;switch(h>>>=3){case 1:{if(b!==2)break;(a=e.bytes()).length?r.json=a:delete r.
json;continue}}e.skipType(b,o,h),e.discardUnknown||(i.makeProp(r,"$unknowns",!1),(r.$unknowns||(r.$unknowns=[])).push(e.raw(g,e.pos)))}if(n!==f){if(e.pos!==u)throw x(
"index out of range");e.len=n}if(t!==f)throw d("missing end group");return r},l.fromObject=function(e,n){if(e instanceof p.multirail.oob.v1.ModexPut)return e;if(!i.
isObject(e))throw O(".multirail.oob.v1.ModexPut: object expected");if(n===f&&(n=0),n>i.recursionLimit)throw d("max depth exceeded");var t=new p.multirail.oob.v1.
ModexPut;return e.json!=null&&e.json.length&&(typeof e.json=="string"?i.base64.decode(e.json,t.json=i.newBuffer(i.base64.length(e.json)),0):e.json.length>=0&&(t.
json=e.json)),t},l.toObject=function(e,n,t){if(n||(n={}),t===f&&(t=0),t>i.recursionLimit)throw d("max depth exceeded");var o={};return n.defaults&&(n.bytes===y?
o.json="":(o.json=[],n.bytes!==P&&(o.json=i.newBuffer(o.json)))),e.json!=null&&s.hasOwnProperty.call(e,"json")&&(o.json=n.bytes===y?i.base64.encode(e.json,0,e.json.
length):n.bytes===P?P.prototype.slice.call(e.json):e.json),o},l.prototype.toJSON=function(){return l.toObject(this,B.util.toJSONOptions)},l})(),L.ModexPart=(function(){
const l=function(e){if(e)for(var n=s.keys(e),t=0;t<n.length;++t)e[n[t]]!=null&&n[t]!=="__proto__"&&(this[n[t]]=e[n[t]])};return l.prototype.last=!1,l.prototype.
packed=i.newBuffer([]),l.prototype.count=0,l.encode=function(e,n,t){if(n||(n=$.create()),t===f&&(t=0),t>i.recursionLimit)throw d("max depth exceeded");if(e.last!=
null&&s.hasOwnProperty.call(e,"last")&&e.last!==!1&&n.uint32(16).bool(e.last),e.packed!=null&&s.hasOwnProperty.call(e,"packed")&&e.packed.length&&n.uint32(26).bytes(
e.packed),e.count!=null&&s.hasOwnProperty.call(e,"count")&&e.count!==0&&n.uint32(32).uint32(e.count),e.$unknowns!=null&&s.hasOwnProperty.call(e,"$unknowns"))for(var o=0;o<
e.$unknowns.length;++o)n.raw(e.$unknowns[o]);return n},l.decode=function(e,n,t,o,c){if(e instanceof v||(e=v.create(e)),o===f&&(o=0),o>v.recursionLimit)throw d("\
max depth exceeded");var u,r,a;if(n===f)u=e.len;else{if(u=e.pos+n,u>e.len)throw x("index out of range");n=e.len,e.len=u}for(r=c||new p.multirail.oob.v1.ModexPart;e.
pos<u;){var g=e.pos,h=e.tag();if(h===t){t=f;break}var b=h&7;switch(h>>>=3){case 2:{if(b!==0)break;(a=e.bool())?r.last=a:delete r.last;continue}case 3:{if(b!==2)
break;(a=e.bytes()).length?r.packed=a:delete r.packed;continue}case 4:{if(b!==0)break;(a=e.uint32())?r.count=a:delete r.count;continue}}e.skipType(b,o,h),e.discardUnknown||
(i.makeProp(r,"$unknowns",!1),(r.$unknowns||(r.$unknowns=[])).push(e.raw(g,e.pos)))}if(n!==f){if(e.pos!==u)throw x("index out of range");e.len=n}if(t!==f)throw d(
"missing end group");return r},l.fromObject=function(e,n){if(e instanceof p.multirail.oob.v1.ModexPart)return e;if(!i.isObject(e))throw O(".multirail.oob.v1.Mod\
exPart: object expected");if(n===f&&(n=0),n>i.recursionLimit)throw d("max depth exceeded");var t=new p.multirail.oob.v1.ModexPart;return e.last!=null&&e.last&&(t.
last=m(e.last)),e.packed!=null&&e.packed.length&&(typeof e.packed=="string"?i.base64.decode(e.packed,t.packed=i.newBuffer(i.base64.length(e.packed)),0):e.packed.
length>=0&&(t.packed=e.packed)),e.count!=null&&k(e.count)!==0&&(t.count=e.count>>>0),t},l.toObject=function(e,n,t){if(n||(n={}),t===f&&(t=0),t>i.recursionLimit)
throw d("max depth exceeded");var o={};return n.defaults&&(o.last=!1,n.bytes===y?o.packed="":(o.packed=[],n.bytes!==P&&(o.packed=i.newBuffer(o.packed))),o.count=
0),e.last!=null&&s.hasOwnProperty.call(e,"last")&&(o.last=e.last),e.packed!=null&&s.hasOwnProperty.call(e,"packed")&&(o.packed=n.bytes===y?i.base64.encode(e.packed,
0,e.packed.length):n.bytes===P?P.prototype.slice.call(e.packed):e.packed),e.count!=null&&s.hasOwnProperty.call(e,"count")&&(o.count=e.count),o},l.prototype.toJSON=
function(){return l.toObject(this,B.util.toJSONOptions)},l})(),L.ModexUpdate=(function(){const l=function(e){if(e)for(var n=s.keys(e),t=0;t<n.length;++t)e[n[t]]!=
null&&n[t]!=="__proto__"&&(this[n[t]]=e[n[t]])};return l.prototype.rank=0,l.prototype.json=i.newBuffer([]),l.encode=function(e,n,t){if(n||(n=$.create()),t===f&&
(t=0),t>i.recursionLimit)throw d("max depth exceeded");if(e.rank!=null&&s.hasOwnProperty.call(e,"rank")&&e.rank!==0&&n.uint32(8).uint32(e.rank),e.json!=null&&s.
hasOwnProperty.call(e,"json")&&e.json.length&&n.uint32(18).bytes(e.json),e.$unknowns!=null&&s.hasOwnProperty.call(e,"$unknowns"))for(var o=0;o<e.$unknowns.length;++o)
n.raw(e.$unknowns[o]);return n},l.decode=function(e,n,t,o,c){if(e instanceof v||(e=v.create(e)),o===f&&(o=0),o>v.recursionLimit)throw d("max depth exceeded");var u,
r,a;if(n===f)u=e.len;else{if(u=e.pos+n,u>e.len)throw x("index out of range");n=e.len,e.len=u}for(r=c||new p.multirail.oob.v1.ModexUpdate;e.pos<u;){var g=e.pos,h=e.
tag();if(h===t){t=f;break}var b=h&7;switch(h>>>=3){case 1:{if(b!==0)break;(a=e.uint32())?r.rank=a:delete r.rank;continue}case 2:{if(b!==2)break;(a=e.bytes()).length?
r.json=a:delete r.json;continue}}e.skipType(b,o,h),e.discardUnknown||(i.makeProp(r,"$unknowns",!1),(r.$unknowns||(r.$unknowns=[])).push(e.raw(g,e.pos)))}if(n!==
f){if(e.pos!==u)throw x("index out of range");e.len=n}if(t!==f)throw d("missing end group");return r},l.fromObject=function(e,n){if(e instanceof p.multirail.oob.
v1.ModexUpdate)return e;if(!i.isObject(e))throw O(".multirail.oob.v1.ModexUpdate: object expected");if(n===f&&(n=0),n>i.recursionLimit)throw d("max depth exceed\
ed");var t=new p.multirail.oob.v1.ModexUpdate;return e.rank!=null&&k(e.rank)!==0&&(t.rank=e.rank>>>0),e.json!=null&&e.json.length&&(typeof e.json=="string"?i.base64.
decode(e.json,t.json=i.newBuffer(i.base64.length(e.json)),0):e.json.length>=0&&(t.json=e.json)),t},l.toObject=function(e,n,t){if(n||(n={}),t===f&&(t=0),t>i.recursionLimit)
throw d("max depth exceeded");var o={};return n.defaults&&(o.rank=0,n.bytes===y?o.json="":(o.json=[],n.bytes!==P&&(o.json=i.newBuffer(o.json)))),e.rank!=null&&s.
hasOwnProperty.call(e,"rank")&&(o.rank=e.rank),e.json!=null&&s.hasOwnProperty.call(e,"json")&&(o.json=n.bytes===y?i.base64.encode(e.json,0,e.json.length):n.bytes===
P?P.prototype.slice.call(e.json):e.json),o},l.prototype.toJSON=function(){return l.toObject(this,B.util.toJSONOptions)},l})(),L.BarrierEnter=(function(){const l=function(e){
if(e)for(var n=s.keys(e),t=0;t<n.length;++t)e[n[t]]!=null&&n[t]!=="__proto__"&&(this[n[t]]=e[n[t]])};return l.prototype.name="",l.prototype.tolerant=!1,l.encode=
function(e,n,t){if(n||(n=$.create()),t===f&&(t=0),t>i.recursionLimit)throw d("max depth exceeded");if(e.name!=null&&s.hasOwnProperty.call(e,"name")&&e.name!==""&&
n.uint32(10).string(e.name),e.tolerant!=null&&s.hasOwnProperty.call(e,"tolerant")&&e.tolerant!==!1&&n.uint32(16).bool(e.tolerant),e.$unknowns!=null&&s.hasOwnProperty.
call(e,"$unknowns"))for(var o=0;o<e.$unknowns.length;++o)n.raw(e.$unknowns[o]);return n},l.decode=function(e,n,t,o,c){if(e instanceof v||(e=v.create(e)),o===f&&
(o=0),o>v.recursionLimit)throw d("max depth exceeded");var u,r,a;if(n===f)u=e.len;else{if(u=e.pos+n,u>e.len)throw x("index out of range");n=e.len,e.len=u}for(r=
c||new p.multirail.oob.v1.BarrierEnter;e.pos<u;){var g=e.pos,h=e.tag();if(h===t){t=f;break}var b=h&7;switch(h>>>=3){case 1:{if(b!==2)break;(a=e.stringVerify()).
length?r.name=a:delete r.name;continue}case 2:{if(b!==0)break;(a=e.bool())?r.tolerant=a:delete r.tolerant;continue}}e.skipType(b,o,h),e.discardUnknown||(i.makeProp(
r,"$unknowns",!1),(r.$unknowns||(r.$unknowns=[])).push(e.raw(g,e.pos)))}if(n!==f){if(e.pos!==u)throw x("index out of range");e.len=n}if(t!==f)throw d("missing e\
nd group");return r},l.fromObject=function(e,n){if(e instanceof p.multirail.oob.v1.BarrierEnter)return e;if(!i.isObject(e))throw O(".multirail.oob.v1.BarrierEnt\
er: object expected");if(n===f&&(n=0),n>i.recursionLimit)throw d("max depth exceeded");var t=new p.multirail.oob.v1.BarrierEnter;return e.name!=null&&(typeof e.
name!="string"||e.name.length)&&(t.name=y(e.name)),e.tolerant!=null&&e.tolerant&&(t.tolerant=m(e.tolerant)),t},l.toObject=function(e,n,t){if(n||(n={}),t===f&&(t=
0),t>i.recursionLimit)throw d("max depth exceeded");var o={};return n.defaults&&(o.name="",o.tolerant=!1),e.name!=null&&s.hasOwnProperty.call(e,"name")&&(o.name=
e.name),e.tolerant!=null&&s.hasOwnProperty.call(e,"tolerant")&&(o.tolerant=e.tolerant),o},l.prototype.toJSON=function(){return l.toObject(this,B.util.toJSONOptions)},
l})(),L.BarrierDone=(function(){const l=function(e){if(this.dead=[],e)for(var n=s.keys(e),t=0;t<n.length;++t)e[n[t]]!=null&&n[t]!=="__proto__"&&(this[n[t]]=e[n[t]])};
return l.prototype.name="",l.prototype.dead=i.emptyArray,l.encode=function(e,n,t){if(n||(n=$.create()),t===f&&(t=0),t>i.recursionLimit)throw d("max depth exceed\
ed");if(e.name!=null&&s.hasOwnProperty.call(e,"name")&&e.name!==""&&n.uint32(10).string(e.name),e.dead!=null&&e.dead.length&&n.uint32(18).uint32s(e.dead),e.$unknowns!=
null&&s.hasOwnProperty.call(e,"$unknowns"))for(var o=0;o<e.$unknowns.length;++o)n.raw(e.$unknowns[o]);return n},l.decode=function(e,n,t,o,c){if(e instanceof v||
(e=v.create(e)),o===f&&(o=0),o>v.recursionLimit)throw d("max depth exceeded");var u,r,a;if(n===f)u=e.len;else{if(u=e.pos+n,u>e.len)throw x("index out of range");
n=e.len,e.len=u}for(r=c||new p.multirail.oob.v1.BarrierDone;e.pos<u;){var g=e.pos,h=e.tag();if(h===t){t=f;break}var b=h&7;switch(h>>>=3){case 1:{if(b!==2)break;
(a=e.stringVerify()).length?r.name=a:delete r.name;continue}case 2:{if(b===2){r.dead&&r.dead.length||(r.dead=[]),e.uint32s(r.dead);continue}if(b!==0)break;r.dead&&
r.dead.length||(r.dead=[]),r.dead.push(e.uint32());continue}}e.skipType(b,o,h),e.discardUnknown||(i.makeProp(r,"$unknowns",!1),(r.$unknowns||(r.$unknowns=[])).push(
e.raw(g,e.pos)))}if(n!==f){if(e.pos!==u)throw x("index out of range");e.len=n}if(t!==f)throw d("missing end group");return r},l.fromObject=function(e,n){if(e instanceof
p.multirail.oob.v1.BarrierDone)return e;if(!i.isObject(e))throw O(".multirail.oob.v1.BarrierDone: object expected");if(n===f&&(n=0),n>i.recursionLimit)throw d("\
max depth exceeded");var t=new p.multirail.oob.v1.BarrierDone;if(e.name!=null&&(typeof e.name!="string"||e.name.length)&&(t.name=y(e.name)),e.dead){if(!P.isArray(
e.dead))throw O(".multirail.oob.v1.BarrierDone.dead: array expected");t.dead=P(e.dead.length);for(var o=0;o<e.dead.length;++o)t.dead[o]=e.dead[o]>>>0}return t},
l.toObject=function(e,n,t){if(n||(n={}),t===f&&(t=0),t>i.recursionLimit)throw d("max depth exceeded");var o={};if((n.arrays||n.defaults)&&(o.dead=[]),n.defaults&&
(o.name=""),e.name!=null&&s.hasOwnProperty.call(e,"name")&&(o.name=e.name),e.dead&&e.dead.length){o.dead=P(e.dead.length);for(var c=0;c<e.dead.length;++c)o.dead[c]=
e.dead[c]}return o},l.prototype.toJSON=function(){return l.toObject(this,B.util.toJSONOptions)},l})(),L.BarrierAsk=(function(){const l=function(e){if(e)for(var n=s.
keys(e),t=0;t<n.length;++t)e[n[t]]!=null&&n[t]!=="__proto__"&&(this[n[t]]=e[n[t]])};return l.prototype.name="",l.encode=function(e,n,t){if(n||(n=$.create()),t===
f&&(t=0),t>i.recursionLimit)throw d("max depth exceeded");if(e.name!=null&&s.hasOwnProperty.call(e,"name")&&e.name!==""&&n.uint32(10).string(e.name),e.$unknowns!=
null&&s.hasOwnProperty.call(e,"$unknowns"))for(var o=0;o<e.$unknowns.length;++o)n.raw(e.$unknowns[o]);return n},l.decode=function(e,n,t,o,c){if(e instanceof v||
(e=v.create(e)),o===f&&(o=0),o>v.recursionLimit)throw d("max depth exceeded");var u,r,a;if(n===f)u=e.len;else{if(u=e.pos+n,u>e.len)throw x("index out of range");
n=e.len,e.len=u}for(r=c||new p.multirail.oob.v1.BarrierAsk;e.pos<u;){var g=e.pos,h=e.tag();if(h===t){t=f;break}var b=h&7;switch(h>>>=3){case 1:{if(b!==2)break;(a=
e.stringVerify()).length?r.name=a:delete r.name;continue}}e.skipType(b,o,h),e.discardUnknown||(i.makeProp(r,"$unknowns",!1),(r.$unknowns||(r.$unknowns=[])).push(
e.raw(g,e.pos)))}if(n!==f){if(e.pos!==u)throw x("index out of range");e.len=n}if(t!==f)throw d("missing end group");return r},l.fromObject=function(e,n){if(e instanceof
p.multirail.oob.v1.BarrierAsk)return e;if(!i.isObject(e))throw O(".multirail.oob.v1.BarrierAsk: object expected");if(n===f&&(n=0),n>i.recursionLimit)throw d("ma\
x depth exceeded");var t=new p.multirail.oob.v1.BarrierAsk;return e.name!=null&&(typeof e.name!="string"||e.name.length)&&(t.name=y(e.name)),t},l.toObject=function(e,n,t){
if(n||(n={}),t===f&&(t=0),t>i.recursionLimit)throw d("max depth exceeded");var o={};return n.defaults&&(o.name=""),e.name!=null&&s.hasOwnProperty.call(e,"name")&&
(o.name=e.name),o},l.prototype.toJSON=function(){return l.toObject(this,B.util.toJSONOptions)},l})(),L.BarrierMissing=(function(){const l=function(e){if(this.ranks=
[],e)for(var n=s.keys(e),t=0;t<n.length;++t)e[n[t]]!=null&&n[t]!=="__proto__"&&(this[n[t]]=e[n[t]])};return l.prototype.name="",l.prototype.ranks=i.emptyArray,l.
encode=function(e,n,t){if(n||(n=$.create()),t===f&&(t=0),t>i.recursionLimit)throw d("max depth exceeded");if(e.name!=null&&s.hasOwnProperty.call(e,"name")&&e.name!==
""&&n.uint32(10).string(e.name),e.ranks!=null&&e.ranks.length&&n.uint32(18).uint32s(e.ranks),e.$unknowns!=null&&s.hasOwnProperty.call(e,"$unknowns"))for(var o=0;o<
e.$unknowns.length;++o)n.raw(e.$unknowns[o]);return n},l.decode=function(e,n,t,o,c){if(e instanceof v||(e=v.create(e)),o===f&&(o=0),o>v.recursionLimit)throw d("\
max depth exceeded");var u,r,a;if(n===f)u=e.len;else{if(u=e.pos+n,u>e.len)throw x("index out of range");n=e.len,e.len=u}for(r=c||new p.multirail.oob.v1.BarrierMissing;e.
pos<u;){var g=e.pos,h=e.tag();if(h===t){t=f;break}var b=h&7;switch(h>>>=3){case 1:{if(b!==2)break;(a=e.stringVerify()).length?r.name=a:delete r.name;continue}case 2:{
if(b===2){r.ranks&&r.ranks.length||(r.ranks=[]),e.uint32s(r.ranks);continue}if(b!==0)break;r.ranks&&r.ranks.length||(r.ranks=[]),r.ranks.push(e.uint32());continue}}
e.skipType(b,o,h),e.discardUnknown||(i.makeProp(r,"$unknowns",!1),(r.$unknowns||(r.$unknowns=[])).push(e.raw(g,e.pos)))}if(n!==f){if(e.pos!==u)throw x("index ou\
t of range");e.len=n}if(t!==f)throw d("missing end group");return r},l.fromObject=function(e,n){if(e instanceof p.multirail.oob.v1.BarrierMissing)return e;if(!i.
isObject(e))throw O(".multirail.oob.v1.BarrierMissing: object expected");if(n===f&&(n=0),n>i.recursionLimit)throw d("max depth exceeded");var t=new p.multirail.
oob.v1.BarrierMissing;if(e.name!=null&&(typeof e.name!="string"||e.name.length)&&(t.name=y(e.name)),e.ranks){if(!P.isArray(e.ranks))throw O(".multirail.oob.v1.B\
arrierMissing.ranks: array expected");t.ranks=P(e.ranks.length);for(var o=0;o<e.ranks.length;++o)t.ranks[o]=e.ranks[o]>>>0}return t},l.toObject=function(e,n,t){
if(n||(n={}),t===f&&(t=0),t>i.recursionLimit)throw d("max depth exceeded");var o={};if((n.arrays||n.defaults)&&(o.ranks=[]),n.defaults&&(o.name=""),e.name!=null&&
s.hasOwnProperty.call(e,"name")&&(o.name=e.name),e.ranks&&e.ranks.length){o.ranks=P(e.ranks.length);for(var c=0;c<e.ranks.length;++c)o.ranks[c]=e.ranks[c]}return o},
l.prototype.toJSON=function(){return l.toObject(this,B.util.toJSONOptions)},l})(),L.CollectiveFailed=(function(){const l=function(e){if(e)for(var n=s.keys(e),t=0;t<
n.length;++t)e[n[t]]!=null&&n[t]!=="__proto__"&&(this[n[t]]=e[n[t]])};return l.prototype.modex=!1,l.prototype.name="",l.prototype.rank=0,l.prototype.text="",l.encode=
function(e,n,t){if(n||(n=$.create()),t===f&&(t=0),t>i.recursionLimit)throw d("max depth exceeded");if(e.modex!=null&&s.hasOwnProperty.call(e,"modex")&&e.modex!==
!1&&n.uint32(8).bool(e.modex),e.name!=null&&s.hasOwnProperty.call(e,"name")&&e.name!==""&&n.uint32(18).string(e.name),e.rank!=null&&s.hasOwnProperty.call(e,"ran\
k")&&e.rank!==0&&n.uint32(24).uint32(e.rank),e.text!=null&&s.hasOwnProperty.call(e,"text")&&e.text!==""&&n.uint32(34).string(e.text),e.$unknowns!=null&&s.hasOwnProperty.
call(e,"$unknowns"))for(var o=0;o<e.$unknowns.length;++o)n.raw(e.$unknowns[o]);return n},l.decode=function(e,n,t,o,c){if(e instanceof v||(e=v.create(e)),o===f&&
(o=0),o>v.recursionLimit)throw d("max depth exceeded");var u,r,a;if(n===f)u=e.len;else{if(u=e.pos+n,u>e.len)throw x("index out of range");n=e.len,e.len=u}for(r=
c||new p.multirail.oob.v1.CollectiveFailed;e.pos<u;){var g=e.pos,h=e.tag();if(h===t){t=f;break}var b=h&7;switch(h>>>=3){case 1:{if(b!==0)break;(a=e.bool())?r.modex=
a:delete r.modex;continue}case 2:{if(b!==2)break;(a=e.stringVerify()).length?r.name=a:delete r.name;continue}case 3:{if(b!==0)break;(a=e.uint32())?r.rank=a:delete r.
rank;continue}case 4:{if(b!==2)break;(a=e.stringVerify()).length?r.text=a:delete r.text;continue}}e.skipType(b,o,h),e.discardUnknown||(i.makeProp(r,"$unknowns",
!1),(r.$unknowns||(r.$unknowns=[])).push(e.raw(g,e.pos)))}if(n!==f){if(e.pos!==u)throw x("index out of range");e.len=n}if(t!==f)throw d("missing end group");return r},
l.fromObject=function(e,n){if(e instanceof p.multirail.oob.v1.CollectiveFailed)return e;if(!i.isObject(e))throw O(".multirail.oob.v1.CollectiveFailed: object ex\
pected");if(n===f&&(n=0),n>i.recursionLimit)throw d("max depth exceeded");var t=new p.multirail.oob.v1.CollectiveFailed;return e.modex!=null&&e.modex&&(t.modex=
m(e.modex)),e.name!=null&&(typeof e.name!="string"||e.name.length)&&(t.name=y(e.name)),e.rank!=null&&k(e.rank)!==0&&(t.rank=e.rank>>>0),e.text!=null&&(typeof e.
text!="string"||e.text.length)&&(t.text=y(e.text)),t},l.toObject=function(e,n,t){if(n||(n={}),t===f&&(t=0),t>i.recursionLimit)throw d("max depth exceeded");var o={};
return n.defaults&&(o.modex=!1,o.name="",o.rank=0,o.text=""),e.modex!=null&&s.hasOwnProperty.call(e,"modex")&&(o.modex=e.modex),e.name!=null&&s.hasOwnProperty.call(
e,"name")&&(o.name=e.name),e.rank!=null&&s.hasOwnProperty.call(e,"rank")&&(o.rank=e.rank),e.text!=null&&s.hasOwnProperty.call(e,"text")&&(o.text=e.text),o},l.prototype.
toJSON=function(){return l.toObject(this,B.util.toJSONOptions)},l})(),L.Abort=(function(){const l=function(e){if(e)for(var n=s.keys(e),t=0;t<n.length;++t)e[n[t]]!=
null&&n[t]!=="__proto__"&&(this[n[t]]=e[n[t]])};return l.prototype.rank=0,l.prototype.code=0,l.prototype.reason="",l.prototype.stack="",l.encode=function(e,n,t){
if(n||(n=$.create()),t===f&&(t=0),t>i.recursionLimit)throw d("max depth exceeded");if(e.rank!=null&&s.hasOwnProperty.call(e,"rank")&&e.rank!==0&&n.uint32(8).uint32(
e.rank),e.code!=null&&s.hasOwnProperty.call(e,"code")&&e.code!==0&&n.uint32(16).sint32(e.code),e.reason!=null&&s.hasOwnProperty.call(e,"reason")&&e.reason!==""&&
n.uint32(26).string(e.reason),e.stack!=null&&s.hasOwnProperty.call(e,"stack")&&e.stack!==""&&n.uint32(34).string(e.stack),e.$unknowns!=null&&s.hasOwnProperty.call(
e,"$unknowns"))for(var o=0;o<e.$unknowns.length;++o)n.raw(e.$unknowns[o]);return n},l.decode=function(e,n,t,o,c){if(e instanceof v||(e=v.create(e)),o===f&&(o=0),
o>v.recursionLimit)throw d("max depth exceeded");var u,r,a;if(n===f)u=e.len;else{if(u=e.pos+n,u>e.len)throw x("index out of range");n=e.len,e.len=u}for(r=c||new p.
multirail.oob.v1.Abort;e.pos<u;){var g=e.pos,h=e.tag();if(h===t){t=f;break}var b=h&7;switch(h>>>=3){case 1:{if(b!==0)break;(a=e.uint32())?r.rank=a:delete r.rank;
continue}case 2:{if(b!==0)break;(a=e.sint32())?r.code=a:delete r.code;continue}case 3:{if(b!==2)break;(a=e.stringVerify()).length?r.reason=a:delete r.reason;continue}case 4:{
if(b!==2)break;(a=e.stringVerify()).length?r.stack=a:delete r.stack;continue}}e.skipType(b,o,h),e.discardUnknown||(i.makeProp(r,"$unknowns",!1),(r.$unknowns||(r.
$unknowns=[])).push(e.raw(g,e.pos)))}if(n!==f){if(e.pos!==u)throw x("index out of range");e.len=n}if(t!==f)throw d("missing end group");return r},l.fromObject=function(e,n){
if(e instanceof p.multirail.oob.v1.Abort)return e;if(!i.isObject(e))throw O(".multirail.oob.v1.Abort: object expected");if(n===f&&(n=0),n>i.recursionLimit)throw d(
"max depth exceeded");var t=new p.multirail.oob.v1.Abort;return e.rank!=null&&k(e.rank)!==0&&(t.rank=e.rank>>>0),e.code!=null&&k(e.code)!==0&&(t.code=e.code|0),
e.reason!=null&&(typeof e.reason!="string"||e.reason.length)&&(t.reason=y(e.reason)),e.stack!=null&&(typeof e.stack!="string"||e.stack.length)&&(t.stack=y(e.stack)),
t},l.toObject=function(e,n,t){if(n||(n={}),t===f&&(t=0),t>i.recursionLimit)throw d("max depth exceeded");var o={};return n.defaults&&(o.rank=0,o.code=0,o.reason=
"",o.stack=""),e.rank!=null&&s.hasOwnProperty.call(e,"rank")&&(o.rank=e.rank),e.code!=null&&s.hasOwnProperty.call(e,"code")&&(o.code=e.code),e.reason!=null&&s.hasOwnProperty.
call(e,"reason")&&(o.reason=e.reason),e.stack!=null&&s.hasOwnProperty.call(e,"stack")&&(o.stack=e.stack),o},l.prototype.toJSON=function(){return l.toObject(this,
B.util.toJSONOptions)},l})(),L.ProcessExit=(function(){const l=function(n){if(n)for(var t=s.keys(n),o=0;o<t.length;++o)n[t[o]]!=null&&t[o]!=="__proto__"&&(this[t[o]]=
n[t[o]])};l.prototype.rank=0,l.prototype.code=null,l.prototype.signal="",l.prototype.finalized=!1,l.prototype.lost=!1,l.prototype.replaced=!1;let e;return s.defineProperty(
l.prototype,"_code",{get:i.oneOfGetter(e=["code"]),set:i.oneOfSetter(e)}),l.encode=function(n,t,o){if(t||(t=$.create()),o===f&&(o=0),o>i.recursionLimit)throw d(
"max depth exceeded");if(n.rank!=null&&s.hasOwnProperty.call(n,"rank")&&n.rank!==0&&t.uint32(8).uint32(n.rank),n.code!=null&&s.hasOwnProperty.call(n,"code")&&t.
uint32(16).sint32(n.code),n.signal!=null&&s.hasOwnProperty.call(n,"signal")&&n.signal!==""&&t.uint32(26).string(n.signal),n.finalized!=null&&s.hasOwnProperty.call(
n,"finalized")&&n.finalized!==!1&&t.uint32(32).bool(n.finalized),n.lost!=null&&s.hasOwnProperty.call(n,"lost")&&n.lost!==!1&&t.uint32(40).bool(n.lost),n.replaced!=
null&&s.hasOwnProperty.call(n,"replaced")&&n.replaced!==!1&&t.uint32(48).bool(n.replaced),n.$unknowns!=null&&s.hasOwnProperty.call(n,"$unknowns"))for(var c=0;c<
n.$unknowns.length;++c)t.raw(n.$unknowns[c]);return t},l.decode=function(n,t,o,c,u){if(n instanceof v||(n=v.create(n)),c===f&&(c=0),c>v.recursionLimit)throw d("\
max depth exceeded");var r,a,g;if(t===f)r=n.len;else{if(r=n.pos+t,r>n.len)throw x("index out of range");t=n.len,n.len=r}for(a=u||new p.multirail.oob.v1.ProcessExit;n.
pos<r;){var h=n.pos,b=n.tag();if(b===o){o=f;break}var j=b&7;switch(b>>>=3){case 1:{if(j!==0)break;(g=n.uint32())?a.rank=g:delete a.rank;continue}case 2:{if(j!==
0)break;a.code=n.sint32(),a._code="code";continue}case 3:{if(j!==2)break;(g=n.stringVerify()).length?a.signal=g:delete a.signal;continue}case 4:{if(j!==0)break;
(g=n.bool())?a.finalized=g:delete a.finalized;continue}case 5:{if(j!==0)break;(g=n.bool())?a.lost=g:delete a.lost;continue}case 6:{if(j!==0)break;(g=n.bool())?a.
replaced=g:delete a.replaced;continue}}n.skipType(j,c,b),n.discardUnknown||(i.makeProp(a,"$unknowns",!1),(a.$unknowns||(a.$unknowns=[])).push(n.raw(h,n.pos)))}if(t!==
f){if(n.pos!==r)throw x("index out of range");n.len=t}if(o!==f)throw d("missing end group");return a},l.fromObject=function(n,t){if(n instanceof p.multirail.oob.
v1.ProcessExit)return n;if(!i.isObject(n))throw O(".multirail.oob.v1.ProcessExit: object expected");if(t===f&&(t=0),t>i.recursionLimit)throw d("max depth exceed\
ed");var o=new p.multirail.oob.v1.ProcessExit;return n.rank!=null&&k(n.rank)!==0&&(o.rank=n.rank>>>0),n.code!=null&&(o.code=n.code|0),n.signal!=null&&(typeof n.
signal!="string"||n.signal.length)&&(o.signal=y(n.signal)),n.finalized!=null&&n.finalized&&(o.finalized=m(n.finalized)),n.lost!=null&&n.lost&&(o.lost=m(n.lost)),
n.replaced!=null&&n.replaced&&(o.replaced=m(n.replaced)),o},l.toObject=function(n,t,o){if(t||(t={}),o===f&&(o=0),o>i.recursionLimit)throw d("max depth exceeded");
var c={};return t.defaults&&(c.rank=0,c.signal="",c.finalized=!1,c.lost=!1,c.replaced=!1),n.rank!=null&&s.hasOwnProperty.call(n,"rank")&&(c.rank=n.rank),n.code!=
null&&s.hasOwnProperty.call(n,"code")&&(c.code=n.code),n.signal!=null&&s.hasOwnProperty.call(n,"signal")&&(c.signal=n.signal),n.finalized!=null&&s.hasOwnProperty.
call(n,"finalized")&&(c.finalized=n.finalized),n.lost!=null&&s.hasOwnProperty.call(n,"lost")&&(c.lost=n.lost),n.replaced!=null&&s.hasOwnProperty.call(n,"replace\
d")&&(c.replaced=n.replaced),c},l.prototype.toJSON=function(){return l.toObject(this,B.util.toJSONOptions)},l})(),L.Unreachable=(function(){const l=function(e){
if(e)for(var n=s.keys(e),t=0;t<n.length;++t)e[n[t]]!=null&&n[t]!=="__proto__"&&(this[n[t]]=e[n[t]])};return l.prototype.rank=0,l.prototype.forMs=0,l.prototype.final=
!1,l.encode=function(e,n,t){if(n||(n=$.create()),t===f&&(t=0),t>i.recursionLimit)throw d("max depth exceeded");if(e.rank!=null&&s.hasOwnProperty.call(e,"rank")&&
e.rank!==0&&n.uint32(8).uint32(e.rank),e.forMs!=null&&s.hasOwnProperty.call(e,"forMs")&&e.forMs!==0&&n.uint32(16).uint32(e.forMs),e.final!=null&&s.hasOwnProperty.
call(e,"final")&&e.final!==!1&&n.uint32(24).bool(e.final),e.$unknowns!=null&&s.hasOwnProperty.call(e,"$unknowns"))for(var o=0;o<e.$unknowns.length;++o)n.raw(e.$unknowns[o]);
return n},l.decode=function(e,n,t,o,c){if(e instanceof v||(e=v.create(e)),o===f&&(o=0),o>v.recursionLimit)throw d("max depth exceeded");var u,r,a;if(n===f)u=e.len;else{
if(u=e.pos+n,u>e.len)throw x("index out of range");n=e.len,e.len=u}for(r=c||new p.multirail.oob.v1.Unreachable;e.pos<u;){var g=e.pos,h=e.tag();if(h===t){t=f;break}
var b=h&7;switch(h>>>=3){case 1:{if(b!==0)break;(a=e.uint32())?r.rank=a:delete r.rank;continue}case 2:{if(b!==0)break;(a=e.uint32())?r.forMs=a:delete r.forMs;continue}case 3:{
if(b!==0)break;(a=e.bool())?r.final=a:delete r.final;continue}}e.skipType(b,o,h),e.discardUnknown||(i.makeProp(r,"$unknowns",!1),(r.$unknowns||(r.$unknowns=[])).
push(e.raw(g,e.pos)))}if(n!==f){if(e.pos!==u)throw x("index out of range");e.len=n}if(t!==f)throw d("missing end group");return r},l.fromObject=function(e,n){if(e instanceof
p.multirail.oob.v1.Unreachable)return e;if(!i.isObject(e))throw O(".multirail.oob.v1.Unreachable: object expected");if(n===f&&(n=0),n>i.recursionLimit)throw d("\
max depth exceeded");var t=new p.multirail.oob.v1.Unreachable;return e.rank!=null&&k(e.rank)!==0&&(t.rank=e.rank>>>0),e.forMs!=null&&k(e.forMs)!==0&&(t.forMs=e.
forMs>>>0),e.final!=null&&e.final&&(t.final=m(e.final)),t},l.toObject=function(e,n,t){if(n||(n={}),t===f&&(t=0),t>i.recursionLimit)throw d("max depth exceeded");
var o={};return n.defaults&&(o.rank=0,o.forMs=0,o.final=!1),e.rank!=null&&s.hasOwnProperty.call(e,"rank")&&(o.rank=e.rank),e.forMs!=null&&s.hasOwnProperty.call(
e,"forMs")&&(o.forMs=e.forMs),e.final!=null&&s.hasOwnProperty.call(e,"final")&&(o.final=e.final),o},l.prototype.toJSON=function(){return l.toObject(this,B.util.
toJSONOptions)},l})(),L.RailEvent=(function(){const l=function(e){if(e)for(var n=s.keys(e),t=0;t<n.length;++t)e[n[t]]!=null&&n[t]!=="__proto__"&&(this[n[t]]=e[n[t]])};
return l.prototype.json=i.newBuffer([]),l.encode=function(e,n,t){if(n||(n=$.create()),t===f&&(t=0),t>i.recursionLimit)throw d("max depth exceeded");if(e.json!=null&&
s.hasOwnProperty.call(e,"json")&&e.json.length&&n.uint32(10).bytes(e.json),e.$unknowns!=null&&s.hasOwnProperty.call(e,"$unknowns"))for(var o=0;o<e.$unknowns.length;++o)
n.raw(e.$unknowns[o]);return n},l.decode=function(e,n,t,o,c){if(e instanceof v||(e=v.create(e)),o===f&&(o=0),o>v.recursionLimit)throw d("max depth exceeded");var u,
r,a;if(n===f)u=e.len;else{if(u=e.pos+n,u>e.len)throw x("index out of range");n=e.len,e.len=u}for(r=c||new p.multirail.oob.v1.RailEvent;e.pos<u;){var g=e.pos,h=e.
tag();if(h===t){t=f;break}var b=h&7;switch(h>>>=3){case 1:{if(b!==2)break;(a=e.bytes()).length?r.json=a:delete r.json;continue}}e.skipType(b,o,h),e.discardUnknown||
(i.makeProp(r,"$unknowns",!1),(r.$unknowns||(r.$unknowns=[])).push(e.raw(g,e.pos)))}if(n!==f){if(e.pos!==u)throw x("index out of range");e.len=n}if(t!==f)throw d(
"missing end group");return r},l.fromObject=function(e,n){if(e instanceof p.multirail.oob.v1.RailEvent)return e;if(!i.isObject(e))throw O(".multirail.oob.v1.Rai\
lEvent: object expected");if(n===f&&(n=0),n>i.recursionLimit)throw d("max depth exceeded");var t=new p.multirail.oob.v1.RailEvent;return e.json!=null&&e.json.length&&
(typeof e.json=="string"?i.base64.decode(e.json,t.json=i.newBuffer(i.base64.length(e.json)),0):e.json.length>=0&&(t.json=e.json)),t},l.toObject=function(e,n,t){
if(n||(n={}),t===f&&(t=0),t>i.recursionLimit)throw d("max depth exceeded");var o={};return n.defaults&&(n.bytes===y?o.json="":(o.json=[],n.bytes!==P&&(o.json=i.
newBuffer(o.json)))),e.json!=null&&s.hasOwnProperty.call(e,"json")&&(o.json=n.bytes===y?i.base64.encode(e.json,0,e.json.length):n.bytes===P?P.prototype.slice.call(
e.json):e.json),o},l.prototype.toJSON=function(){return l.toObject(this,B.util.toJSONOptions)},l})(),L.Finalized=(function(){const l=function(e){if(e)for(var n=s.
keys(e),t=0;t<n.length;++t)e[n[t]]!=null&&n[t]!=="__proto__"&&(this[n[t]]=e[n[t]])};return l.encode=function(e,n,t){if(n||(n=$.create()),t===f&&(t=0),t>i.recursionLimit)
throw d("max depth exceeded");if(e.$unknowns!=null&&s.hasOwnProperty.call(e,"$unknowns"))for(var o=0;o<e.$unknowns.length;++o)n.raw(e.$unknowns[o]);return n},l.
decode=function(e,n,t,o,c){if(e instanceof v||(e=v.create(e)),o===f&&(o=0),o>v.recursionLimit)throw d("max depth exceeded");var u,r;if(n===f)u=e.len;else{if(u=e.
pos+n,u>e.len)throw x("index out of range");n=e.len,e.len=u}for(r=c||new p.multirail.oob.v1.Finalized;e.pos<u;){var a=e.pos,g=e.tag();if(g===t){t=f;break}e.skipType(
g&7,o,g),e.discardUnknown||(i.makeProp(r,"$unknowns",!1),(r.$unknowns||(r.$unknowns=[])).push(e.raw(a,e.pos)))}if(n!==f){if(e.pos!==u)throw x("index out of rang\
e");e.len=n}if(t!==f)throw d("missing end group");return r},l.fromObject=function(e,n){if(e instanceof p.multirail.oob.v1.Finalized)return e;if(!i.isObject(e))throw O(
".multirail.oob.v1.Finalized: object expected");if(n===f&&(n=0),n>i.recursionLimit)throw d("max depth exceeded");return new p.multirail.oob.v1.Finalized},l.toObject=
function(){return{}},l.prototype.toJSON=function(){return l.toObject(this,B.util.toJSONOptions)},l})(),L.StandbyState=(function(){const l=function(e){if(e)for(var n=s.
keys(e),t=0;t<n.length;++t)e[n[t]]!=null&&n[t]!=="__proto__"&&(this[n[t]]=e[n[t]])};return l.prototype.rank=0,l.prototype.waiting=!1,l.prototype.place=0,l.encode=
function(e,n,t){if(n||(n=$.create()),t===f&&(t=0),t>i.recursionLimit)throw d("max depth exceeded");if(e.rank!=null&&s.hasOwnProperty.call(e,"rank")&&e.rank!==0&&
n.uint32(8).uint32(e.rank),e.waiting!=null&&s.hasOwnProperty.call(e,"waiting")&&e.waiting!==!1&&n.uint32(16).bool(e.waiting),e.place!=null&&s.hasOwnProperty.call(
e,"place")&&e.place!==0&&n.uint32(24).uint32(e.place),e.$unknowns!=null&&s.hasOwnProperty.call(e,"$unknowns"))for(var o=0;o<e.$unknowns.length;++o)n.raw(e.$unknowns[o]);
return n},l.decode=function(e,n,t,o,c){if(e instanceof v||(e=v.create(e)),o===f&&(o=0),o>v.recursionLimit)throw d("max depth exceeded");var u,r,a;if(n===f)u=e.len;else{
if(u=e.pos+n,u>e.len)throw x("index out of range");n=e.len,e.len=u}for(r=c||new p.multirail.oob.v1.StandbyState;e.pos<u;){var g=e.pos,h=e.tag();if(h===t){t=f;break}
var b=h&7;switch(h>>>=3){case 1:{if(b!==0)break;(a=e.uint32())?r.rank=a:delete r.rank;continue}case 2:{if(b!==0)break;(a=e.bool())?r.waiting=a:delete r.waiting;
continue}case 3:{if(b!==0)break;(a=e.uint32())?r.place=a:delete r.place;continue}}e.skipType(b,o,h),e.discardUnknown||(i.makeProp(r,"$unknowns",!1),(r.$unknowns||
(r.$unknowns=[])).push(e.raw(g,e.pos)))}if(n!==f){if(e.pos!==u)throw x("index out of range");e.len=n}if(t!==f)throw d("missing end group");return r},l.fromObject=
function(e,n){if(e instanceof p.multirail.oob.v1.StandbyState)return e;if(!i.isObject(e))throw O(".multirail.oob.v1.StandbyState: object expected");if(n===f&&(n=
0),n>i.recursionLimit)throw d("max depth exceeded");var t=new p.multirail.oob.v1.StandbyState;return e.rank!=null&&k(e.rank)!==0&&(t.rank=e.rank>>>0),e.waiting!=
null&&e.waiting&&(t.waiting=m(e.waiting)),e.place!=null&&k(e.place)!==0&&(t.place=e.place>>>0),t},l.toObject=function(e,n,t){if(n||(n={}),t===f&&(t=0),t>i.recursionLimit)
throw d("max depth exceeded");var o={};return n.defaults&&(o.rank=0,o.waiting=!1,o.place=0),e.rank!=null&&s.hasOwnProperty.call(e,"rank")&&(o.rank=e.rank),e.waiting!=
null&&s.hasOwnProperty.call(e,"waiting")&&(o.waiting=e.waiting),e.place!=null&&s.hasOwnProperty.call(e,"place")&&(o.place=e.place),o},l.prototype.toJSON=function(){
return l.toObject(this,B.util.toJSONOptions)},l})(),L.StandbyCall=(function(){const l=function(e){if(e)for(var n=s.keys(e),t=0;t<n.length;++t)e[n[t]]!=null&&n[t]!==
"__proto__"&&(this[n[t]]=e[n[t]])};return l.prototype.rank=0,l.prototype.call=i.newBuffer([]),l.encode=function(e,n,t){if(n||(n=$.create()),t===f&&(t=0),t>i.recursionLimit)
throw d("max depth exceeded");if(e.rank!=null&&s.hasOwnProperty.call(e,"rank")&&e.rank!==0&&n.uint32(8).uint32(e.rank),e.call!=null&&s.hasOwnProperty.call(e,"ca\
ll")&&e.call.length&&n.uint32(18).bytes(e.call),e.$unknowns!=null&&s.hasOwnProperty.call(e,"$unknowns"))for(var o=0;o<e.$unknowns.length;++o)n.raw(e.$unknowns[o]);
return n},l.decode=function(e,n,t,o,c){if(e instanceof v||(e=v.create(e)),o===f&&(o=0),o>v.recursionLimit)throw d("max depth exceeded");var u,r,a;if(n===f)u=e.len;else{
if(u=e.pos+n,u>e.len)throw x("index out of range");n=e.len,e.len=u}for(r=c||new p.multirail.oob.v1.StandbyCall;e.pos<u;){var g=e.pos,h=e.tag();if(h===t){t=f;break}
var b=h&7;switch(h>>>=3){case 1:{if(b!==0)break;(a=e.uint32())?r.rank=a:delete r.rank;continue}case 2:{if(b!==2)break;(a=e.bytes()).length?r.call=a:delete r.call;
continue}}e.skipType(b,o,h),e.discardUnknown||(i.makeProp(r,"$unknowns",!1),(r.$unknowns||(r.$unknowns=[])).push(e.raw(g,e.pos)))}if(n!==f){if(e.pos!==u)throw x(
"index out of range");e.len=n}if(t!==f)throw d("missing end group");return r},l.fromObject=function(e,n){if(e instanceof p.multirail.oob.v1.StandbyCall)return e;
if(!i.isObject(e))throw O(".multirail.oob.v1.StandbyCall: object expected");if(n===f&&(n=0),n>i.recursionLimit)throw d("max depth exceeded");var t=new p.multirail.
oob.v1.StandbyCall;return e.rank!=null&&k(e.rank)!==0&&(t.rank=e.rank>>>0),e.call!=null&&e.call.length&&(typeof e.call=="string"?i.base64.decode(e.call,t.call=i.
newBuffer(i.base64.length(e.call)),0):e.call.length>=0&&(t.call=e.call)),t},l.toObject=function(e,n,t){if(n||(n={}),t===f&&(t=0),t>i.recursionLimit)throw d("max\
 depth exceeded");var o={};return n.defaults&&(o.rank=0,n.bytes===y?o.call="":(o.call=[],n.bytes!==P&&(o.call=i.newBuffer(o.call)))),e.rank!=null&&s.hasOwnProperty.
call(e,"rank")&&(o.rank=e.rank),e.call!=null&&s.hasOwnProperty.call(e,"call")&&(o.call=n.bytes===y?i.base64.encode(e.call,0,e.call.length):n.bytes===P?P.prototype.
slice.call(e.call):e.call),o},l.prototype.toJSON=function(){return l.toObject(this,B.util.toJSONOptions)},l})(),L.ProcessJoined=(function(){const l=function(e){
if(e)for(var n=s.keys(e),t=0;t<n.length;++t)e[n[t]]!=null&&n[t]!=="__proto__"&&(this[n[t]]=e[n[t]])};return l.prototype.number=0,l.prototype.incarnation=i.Long?
i.Long.fromBits(0,0,!0):0,l.prototype.json=i.newBuffer([]),l.encode=function(e,n,t){if(n||(n=$.create()),t===f&&(t=0),t>i.recursionLimit)throw d("max depth exce\
eded");if(e.number!=null&&s.hasOwnProperty.call(e,"number")&&e.number!==0&&n.uint32(8).uint32(e.number),e.incarnation!=null&&s.hasOwnProperty.call(e,"incarnatio\
n")&&(typeof e.incarnation=="object"?e.incarnation.low||e.incarnation.high:e.incarnation!==0)&&n.uint32(16).uint64(e.incarnation),e.json!=null&&s.hasOwnProperty.
call(e,"json")&&e.json.length&&n.uint32(26).bytes(e.json),e.$unknowns!=null&&s.hasOwnProperty.call(e,"$unknowns"))for(var o=0;o<e.$unknowns.length;++o)n.raw(e.$unknowns[o]);
return n},l.decode=function(e,n,t,o,c){if(e instanceof v||(e=v.create(e)),o===f&&(o=0),o>v.recursionLimit)throw d("max depth exceeded");var u,r,a;if(n===f)u=e.len;else{
if(u=e.pos+n,u>e.len)throw x("index out of range");n=e.len,e.len=u}for(r=c||new p.multirail.oob.v1.ProcessJoined;e.pos<u;){var g=e.pos,h=e.tag();if(h===t){t=f;break}
var b=h&7;switch(h>>>=3){case 1:{if(b!==0)break;(a=e.uint32())?r.number=a:delete r.number;continue}case 2:{if(b!==0)break;(typeof(a=e.uint64())=="object"?a.low||
a.high:a!==0)?r.incarnation=a:delete r.incarnation;continue}case 3:{if(b!==2)break;(a=e.bytes()).length?r.json=a:delete r.json;continue}}e.skipType(b,o,h),e.discardUnknown||
(i.makeProp(r,"$unknowns",!1),(r.$unknowns||(r.$unknowns=[])).push(e.raw(g,e.pos)))}if(n!==f){if(e.pos!==u)throw x("index out of range");e.len=n}if(t!==f)throw d(
"missing end group");return r},l.fromObject=function(e,n){if(e instanceof p.multirail.oob.v1.ProcessJoined)return e;if(!i.isObject(e))throw O(".multirail.oob.v1\
.ProcessJoined: object expected");if(n===f&&(n=0),n>i.recursionLimit)throw d("max depth exceeded");var t=new p.multirail.oob.v1.ProcessJoined;return e.number!=null&&
k(e.number)!==0&&(t.number=e.number>>>0),e.incarnation!=null&&(typeof e.incarnation=="object"?e.incarnation.low||e.incarnation.high:k(e.incarnation)!==0)&&(i.Long?
t.incarnation=i.Long.fromValue(e.incarnation,!0):typeof e.incarnation=="string"?t.incarnation=S(e.incarnation,10):typeof e.incarnation=="number"?t.incarnation=e.
incarnation:typeof e.incarnation=="object"&&(t.incarnation=new i.LongBits(e.incarnation.low>>>0,e.incarnation.high>>>0).toNumber(!0))),e.json!=null&&e.json.length&&
(typeof e.json=="string"?i.base64.decode(e.json,t.json=i.newBuffer(i.base64.length(e.json)),0):e.json.length>=0&&(t.json=e.json)),t},l.toObject=function(e,n,t){
if(n||(n={}),t===f&&(t=0),t>i.recursionLimit)throw d("max depth exceeded");var o={};if(n.defaults){if(o.number=0,i.Long){var c=new i.Long(0,0,!0);o.incarnation=
n.longs===y?c.toString():n.longs===k?c.toNumber():typeof w<"u"&&n.longs===w?c.toBigInt():c}else o.incarnation=n.longs===y?"0":typeof w<"u"&&n.longs===w?w("0"):0;
n.bytes===y?o.json="":(o.json=[],n.bytes!==P&&(o.json=i.newBuffer(o.json)))}return e.number!=null&&s.hasOwnProperty.call(e,"number")&&(o.number=e.number),e.incarnation!=
null&&s.hasOwnProperty.call(e,"incarnation")&&(typeof w<"u"&&n.longs===w?o.incarnation=typeof e.incarnation=="number"?w(e.incarnation):i.Long.fromBits(e.incarnation.
low>>>0,e.incarnation.high>>>0,!0).toBigInt():typeof e.incarnation=="number"?o.incarnation=n.longs===y?y(e.incarnation):e.incarnation:o.incarnation=n.longs===y?
i.Long.prototype.toString.call(e.incarnation):n.longs===k?new i.LongBits(e.incarnation.low>>>0,e.incarnation.high>>>0).toNumber(!0):e.incarnation),e.json!=null&&
s.hasOwnProperty.call(e,"json")&&(o.json=n.bytes===y?i.base64.encode(e.json,0,e.json.length):n.bytes===P?P.prototype.slice.call(e.json):e.json),o},l.prototype.toJSON=
function(){return l.toObject(this,B.util.toJSONOptions)},l})(),L.StandbysEnd=(function(){const l=function(e){if(e)for(var n=s.keys(e),t=0;t<n.length;++t)e[n[t]]!=
null&&n[t]!=="__proto__"&&(this[n[t]]=e[n[t]])};return l.encode=function(e,n,t){if(n||(n=$.create()),t===f&&(t=0),t>i.recursionLimit)throw d("max depth exceeded");
if(e.$unknowns!=null&&s.hasOwnProperty.call(e,"$unknowns"))for(var o=0;o<e.$unknowns.length;++o)n.raw(e.$unknowns[o]);return n},l.decode=function(e,n,t,o,c){if(e instanceof
v||(e=v.create(e)),o===f&&(o=0),o>v.recursionLimit)throw d("max depth exceeded");var u,r;if(n===f)u=e.len;else{if(u=e.pos+n,u>e.len)throw x("index out of range");
n=e.len,e.len=u}for(r=c||new p.multirail.oob.v1.StandbysEnd;e.pos<u;){var a=e.pos,g=e.tag();if(g===t){t=f;break}e.skipType(g&7,o,g),e.discardUnknown||(i.makeProp(
r,"$unknowns",!1),(r.$unknowns||(r.$unknowns=[])).push(e.raw(a,e.pos)))}if(n!==f){if(e.pos!==u)throw x("index out of range");e.len=n}if(t!==f)throw d("missing e\
nd group");return r},l.fromObject=function(e,n){if(e instanceof p.multirail.oob.v1.StandbysEnd)return e;if(!i.isObject(e))throw O(".multirail.oob.v1.StandbysEnd\
: object expected");if(n===f&&(n=0),n>i.recursionLimit)throw d("max depth exceeded");return new p.multirail.oob.v1.StandbysEnd},l.toObject=function(){return{}},
l.prototype.toJSON=function(){return l.toObject(this,B.util.toJSONOptions)},l})(),L.WaitsAsk=(function(){const l=function(e){if(e)for(var n=s.keys(e),t=0;t<n.length;++t)
e[n[t]]!=null&&n[t]!=="__proto__"&&(this[n[t]]=e[n[t]])};return l.prototype.reason="",l.encode=function(e,n,t){if(n||(n=$.create()),t===f&&(t=0),t>i.recursionLimit)
throw d("max depth exceeded");if(e.reason!=null&&s.hasOwnProperty.call(e,"reason")&&e.reason!==""&&n.uint32(10).string(e.reason),e.$unknowns!=null&&s.hasOwnProperty.
call(e,"$unknowns"))for(var o=0;o<e.$unknowns.length;++o)n.raw(e.$unknowns[o]);return n},l.decode=function(e,n,t,o,c){if(e instanceof v||(e=v.create(e)),o===f&&
(o=0),o>v.recursionLimit)throw d("max depth exceeded");var u,r,a;if(n===f)u=e.len;else{if(u=e.pos+n,u>e.len)throw x("index out of range");n=e.len,e.len=u}for(r=
c||new p.multirail.oob.v1.WaitsAsk;e.pos<u;){var g=e.pos,h=e.tag();if(h===t){t=f;break}var b=h&7;switch(h>>>=3){case 1:{if(b!==2)break;(a=e.stringVerify()).length?
r.reason=a:delete r.reason;continue}}e.skipType(b,o,h),e.discardUnknown||(i.makeProp(r,"$unknowns",!1),(r.$unknowns||(r.$unknowns=[])).push(e.raw(g,e.pos)))}if(n!==
f){if(e.pos!==u)throw x("index out of range");e.len=n}if(t!==f)throw d("missing end group");return r},l.fromObject=function(e,n){if(e instanceof p.multirail.oob.
v1.WaitsAsk)return e;if(!i.isObject(e))throw O(".multirail.oob.v1.WaitsAsk: object expected");if(n===f&&(n=0),n>i.recursionLimit)throw d("max depth exceeded");var t=new p.
multirail.oob.v1.WaitsAsk;return e.reason!=null&&(typeof e.reason!="string"||e.reason.length)&&(t.reason=y(e.reason)),t},l.toObject=function(e,n,t){if(n||(n={}),
t===f&&(t=0),t>i.recursionLimit)throw d("max depth exceeded");var o={};return n.defaults&&(o.reason=""),e.reason!=null&&s.hasOwnProperty.call(e,"reason")&&(o.reason=
e.reason),o},l.prototype.toJSON=function(){return l.toObject(this,B.util.toJSONOptions)},l})(),L.WaitsRequest=(function(){const l=function(e){if(e)for(var n=s.keys(
e),t=0;t<n.length;++t)e[n[t]]!=null&&n[t]!=="__proto__"&&(this[n[t]]=e[n[t]])};return l.prototype.id=0,l.encode=function(e,n,t){if(n||(n=$.create()),t===f&&(t=0),
t>i.recursionLimit)throw d("max depth exceeded");if(e.id!=null&&s.hasOwnProperty.call(e,"id")&&e.id!==0&&n.uint32(8).uint32(e.id),e.$unknowns!=null&&s.hasOwnProperty.
call(e,"$unknowns"))for(var o=0;o<e.$unknowns.length;++o)n.raw(e.$unknowns[o]);return n},l.decode=function(e,n,t,o,c){if(e instanceof v||(e=v.create(e)),o===f&&
(o=0),o>v.recursionLimit)throw d("max depth exceeded");var u,r,a;if(n===f)u=e.len;else{if(u=e.pos+n,u>e.len)throw x("index out of range");n=e.len,e.len=u}for(r=
c||new p.multirail.oob.v1.WaitsRequest;e.pos<u;){var g=e.pos,h=e.tag();if(h===t){t=f;break}var b=h&7;switch(h>>>=3){case 1:{if(b!==0)break;(a=e.uint32())?r.id=a:
delete r.id;continue}}e.skipType(b,o,h),e.discardUnknown||(i.makeProp(r,"$unknowns",!1),(r.$unknowns||(r.$unknowns=[])).push(e.raw(g,e.pos)))}if(n!==f){if(e.pos!==
u)throw x("index out of range");e.len=n}if(t!==f)throw d("missing end group");return r},l.fromObject=function(e,n){if(e instanceof p.multirail.oob.v1.WaitsRequest)
return e;if(!i.isObject(e))throw O(".multirail.oob.v1.WaitsRequest: object expected");if(n===f&&(n=0),n>i.recursionLimit)throw d("max depth exceeded");var t=new p.
multirail.oob.v1.WaitsRequest;return e.id!=null&&k(e.id)!==0&&(t.id=e.id>>>0),t},l.toObject=function(e,n,t){if(n||(n={}),t===f&&(t=0),t>i.recursionLimit)throw d(
"max depth exceeded");var o={};return n.defaults&&(o.id=0),e.id!=null&&s.hasOwnProperty.call(e,"id")&&(o.id=e.id),o},l.prototype.toJSON=function(){return l.toObject(
this,B.util.toJSONOptions)},l})(),L.WaitsReport=(function(){const l=function(e){if(e)for(var n=s.keys(e),t=0;t<n.length;++t)e[n[t]]!=null&&n[t]!=="__proto__"&&(this[n[t]]=
e[n[t]])};return l.prototype.id=0,l.prototype.json=i.newBuffer([]),l.encode=function(e,n,t){if(n||(n=$.create()),t===f&&(t=0),t>i.recursionLimit)throw d("max de\
pth exceeded");if(e.id!=null&&s.hasOwnProperty.call(e,"id")&&e.id!==0&&n.uint32(8).uint32(e.id),e.json!=null&&s.hasOwnProperty.call(e,"json")&&e.json.length&&n.
uint32(18).bytes(e.json),e.$unknowns!=null&&s.hasOwnProperty.call(e,"$unknowns"))for(var o=0;o<e.$unknowns.length;++o)n.raw(e.$unknowns[o]);return n},l.decode=function(e,n,t,o,c){
if(e instanceof v||(e=v.create(e)),o===f&&(o=0),o>v.recursionLimit)throw d("max depth exceeded");var u,r,a;if(n===f)u=e.len;else{if(u=e.pos+n,u>e.len)throw x("i\
ndex out of range");n=e.len,e.len=u}for(r=c||new p.multirail.oob.v1.WaitsReport;e.pos<u;){var g=e.pos,h=e.tag();if(h===t){t=f;break}var b=h&7;switch(h>>>=3){case 1:{
if(b!==0)break;(a=e.uint32())?r.id=a:delete r.id;continue}case 2:{if(b!==2)break;(a=e.bytes()).length?r.json=a:delete r.json;continue}}e.skipType(b,o,h),e.discardUnknown||
(i.makeProp(r,"$unknowns",!1),(r.$unknowns||(r.$unknowns=[])).push(e.raw(g,e.pos)))}if(n!==f){if(e.pos!==u)throw x("index out of range");e.len=n}if(t!==f)throw d(
"missing end group");return r},l.fromObject=function(e,n){if(e instanceof p.multirail.oob.v1.WaitsReport)return e;if(!i.isObject(e))throw O(".multirail.oob.v1.W\
aitsReport: object expected");if(n===f&&(n=0),n>i.recursionLimit)throw d("max depth exceeded");var t=new p.multirail.oob.v1.WaitsReport;return e.id!=null&&k(e.id)!==
0&&(t.id=e.id>>>0),e.json!=null&&e.json.length&&(typeof e.json=="string"?i.base64.decode(e.json,t.json=i.newBuffer(i.base64.length(e.json)),0):e.json.length>=0&&
(t.json=e.json)),t},l.toObject=function(e,n,t){if(n||(n={}),t===f&&(t=0),t>i.recursionLimit)throw d("max depth exceeded");var o={};return n.defaults&&(o.id=0,n.
bytes===y?o.json="":(o.json=[],n.bytes!==P&&(o.json=i.newBuffer(o.json)))),e.id!=null&&s.hasOwnProperty.call(e,"id")&&(o.id=e.id),e.json!=null&&s.hasOwnProperty.
call(e,"json")&&(o.json=n.bytes===y?i.base64.encode(e.json,0,e.json.length):n.bytes===P?P.prototype.slice.call(e.json):e.json),o},l.prototype.toJSON=function(){
return l.toObject(this,B.util.toJSONOptions)},l})(),L.Telemetry=(function(){const l=function(e){if(this.rails=[],this.moves=[],this.counters={},e)for(var n=s.keys(
e),t=0;t<n.length;++t)e[n[t]]!=null&&n[t]!=="__proto__"&&(this[n[t]]=e[n[t]])};return l.prototype.atUs=i.Long?i.Long.fromBits(0,0,!0):0,l.prototype.aliveMs=i.Long?
i.Long.fromBits(0,0,!0):0,l.prototype.turns=i.Long?i.Long.fromBits(0,0,!0):0,l.prototype.retainedBytes=i.Long?i.Long.fromBits(0,0,!0):0,l.prototype.takesFaults=
!1,l.prototype.rails=i.emptyArray,l.prototype.moves=i.emptyArray,l.prototype.movesDropped=i.Long?i.Long.fromBits(0,0,!0):0,l.prototype.counters=i.emptyObject,l.
encode=function(e,n,t){if(n||(n=$.create()),t===f&&(t=0),t>i.recursionLimit)throw d("max depth exceeded");if(e.atUs!=null&&s.hasOwnProperty.call(e,"atUs")&&(typeof e.
atUs=="object"?e.atUs.low||e.atUs.high:e.atUs!==0)&&n.uint32(8).uint64(e.atUs),e.aliveMs!=null&&s.hasOwnProperty.call(e,"aliveMs")&&(typeof e.aliveMs=="object"?
e.aliveMs.low||e.aliveMs.high:e.aliveMs!==0)&&n.uint32(16).uint64(e.aliveMs),e.turns!=null&&s.hasOwnProperty.call(e,"turns")&&(typeof e.turns=="object"?e.turns.
low||e.turns.high:e.turns!==0)&&n.uint32(24).uint64(e.turns),e.retainedBytes!=null&&s.hasOwnProperty.call(e,"retainedBytes")&&(typeof e.retainedBytes=="object"?
e.retainedBytes.low||e.retainedBytes.high:e.retainedBytes!==0)&&n.uint32(32).uint64(e.retainedBytes),e.takesFaults!=null&&s.hasOwnProperty.call(e,"takesFaults")&&
e.takesFaults!==!1&&n.uint32(40).bool(e.takesFaults),e.rails!=null&&e.rails.length)for(var o=0;o<e.rails.length;++o)p.multirail.oob.v1.TelemetryRail.encode(e.rails[o],
n.uint32(50).fork(),t+1).ldelim();if(e.moves!=null&&e.moves.length)for(var o=0;o<e.moves.length;++o)p.multirail.oob.v1.TelemetryMove.encode(e.moves[o],n.uint32(
58).fork(),t+1).ldelim();if(e.movesDropped!=null&&s.hasOwnProperty.call(e,"movesDropped")&&(typeof e.movesDropped=="object"?e.movesDropped.low||e.movesDropped.high:
e.movesDropped!==0)&&n.uint32(64).uint64(e.movesDropped),e.counters!=null&&s.hasOwnProperty.call(e,"counters"))for(var c=s.keys(e.counters),o=0;o<c.length;++o)n.
uint32(74).fork().uint32(10).string(c[o]).uint32(16).uint64(e.counters[c[o]]).ldelim();if(e.$unknowns!=null&&s.hasOwnProperty.call(e,"$unknowns"))for(var o=0;o<
e.$unknowns.length;++o)n.raw(e.$unknowns[o]);return n},l.decode=function(e,n,t,o,c){if(e instanceof v||(e=v.create(e)),o===f&&(o=0),o>v.recursionLimit)throw d("\
max depth exceeded");var u,r,a,g;if(n===f)u=e.len;else{if(u=e.pos+n,u>e.len)throw x("index out of range");n=e.len,e.len=u}for(r=c||new p.multirail.oob.v1.Telemetry;e.
pos<u;){var h=e.pos,b=e.tag();if(b===t){t=f;break}var j=b&7;switch(b>>>=3){case 1:{if(j!==0)break;(typeof(g=e.uint64())=="object"?g.low||g.high:g!==0)?r.atUs=g:
delete r.atUs;continue}case 2:{if(j!==0)break;(typeof(g=e.uint64())=="object"?g.low||g.high:g!==0)?r.aliveMs=g:delete r.aliveMs;continue}case 3:{if(j!==0)break;
(typeof(g=e.uint64())=="object"?g.low||g.high:g!==0)?r.turns=g:delete r.turns;continue}case 4:{if(j!==0)break;(typeof(g=e.uint64())=="object"?g.low||g.high:g!==
0)?r.retainedBytes=g:delete r.retainedBytes;continue}case 5:{if(j!==0)break;(g=e.bool())?r.takesFaults=g:delete r.takesFaults;continue}case 6:{if(j!==2)break;r.
rails&&r.rails.length||(r.rails=[]),r.rails.push(p.multirail.oob.v1.TelemetryRail.decode(e,e.size(),f,o+1));continue}case 7:{if(j!==2)break;r.moves&&r.moves.length||
(r.moves=[]),r.moves.push(p.multirail.oob.v1.TelemetryMove.decode(e,e.size(),f,o+1));continue}case 8:{if(j!==0)break;(typeof(g=e.uint64())=="object"?g.low||g.high:
g!==0)?r.movesDropped=g:delete r.movesDropped;continue}case 9:{if(j!==2)break;r.counters===i.emptyObject&&(r.counters={});var U=e.size()+e.pos;if(U>e.len)throw x(
"index out of range");for(e.len=U,a="",g=i.Long?i.Long.fromNumber(0,!0):0;e.pos<U;){var E=e.tag();switch(j=E&7,E>>>=3){case 1:if(j!==2)break;a=e.stringVerify();
continue;case 2:if(j!==0)break;g=e.uint64();continue}e.skipType(j,o,E)}if(e.pos!==U)throw x("index out of range");e.len=u,a==="__proto__"&&i.makeProp(r.counters,
a),r.counters[a]=g;continue}}e.skipType(j,o,b),e.discardUnknown||(i.makeProp(r,"$unknowns",!1),(r.$unknowns||(r.$unknowns=[])).push(e.raw(h,e.pos)))}if(n!==f){if(e.
pos!==u)throw x("index out of range");e.len=n}if(t!==f)throw d("missing end group");return r},l.fromObject=function(e,n){if(e instanceof p.multirail.oob.v1.Telemetry)
return e;if(!i.isObject(e))throw O(".multirail.oob.v1.Telemetry: object expected");if(n===f&&(n=0),n>i.recursionLimit)throw d("max depth exceeded");var t=new p.
multirail.oob.v1.Telemetry;if(e.atUs!=null&&(typeof e.atUs=="object"?e.atUs.low||e.atUs.high:k(e.atUs)!==0)&&(i.Long?t.atUs=i.Long.fromValue(e.atUs,!0):typeof e.
atUs=="string"?t.atUs=S(e.atUs,10):typeof e.atUs=="number"?t.atUs=e.atUs:typeof e.atUs=="object"&&(t.atUs=new i.LongBits(e.atUs.low>>>0,e.atUs.high>>>0).toNumber(
!0))),e.aliveMs!=null&&(typeof e.aliveMs=="object"?e.aliveMs.low||e.aliveMs.high:k(e.aliveMs)!==0)&&(i.Long?t.aliveMs=i.Long.fromValue(e.aliveMs,!0):typeof e.aliveMs==
"string"?t.aliveMs=S(e.aliveMs,10):typeof e.aliveMs=="number"?t.aliveMs=e.aliveMs:typeof e.aliveMs=="object"&&(t.aliveMs=new i.LongBits(e.aliveMs.low>>>0,e.aliveMs.
high>>>0).toNumber(!0))),e.turns!=null&&(typeof e.turns=="object"?e.turns.low||e.turns.high:k(e.turns)!==0)&&(i.Long?t.turns=i.Long.fromValue(e.turns,!0):typeof e.
turns=="string"?t.turns=S(e.turns,10):typeof e.turns=="number"?t.turns=e.turns:typeof e.turns=="object"&&(t.turns=new i.LongBits(e.turns.low>>>0,e.turns.high>>>
0).toNumber(!0))),e.retainedBytes!=null&&(typeof e.retainedBytes=="object"?e.retainedBytes.low||e.retainedBytes.high:k(e.retainedBytes)!==0)&&(i.Long?t.retainedBytes=
i.Long.fromValue(e.retainedBytes,!0):typeof e.retainedBytes=="string"?t.retainedBytes=S(e.retainedBytes,10):typeof e.retainedBytes=="number"?t.retainedBytes=e.retainedBytes:
typeof e.retainedBytes=="object"&&(t.retainedBytes=new i.LongBits(e.retainedBytes.low>>>0,e.retainedBytes.high>>>0).toNumber(!0))),e.takesFaults!=null&&e.takesFaults&&
(t.takesFaults=m(e.takesFaults)),e.rails){if(!P.isArray(e.rails))throw O(".multirail.oob.v1.Telemetry.rails: array expected");t.rails=P(e.rails.length);for(var o=0;o<
e.rails.length;++o){if(!i.isObject(e.rails[o]))throw O(".multirail.oob.v1.Telemetry.rails: object expected");t.rails[o]=p.multirail.oob.v1.TelemetryRail.fromObject(
e.rails[o],n+1)}}if(e.moves){if(!P.isArray(e.moves))throw O(".multirail.oob.v1.Telemetry.moves: array expected");t.moves=P(e.moves.length);for(var o=0;o<e.moves.
length;++o){if(!i.isObject(e.moves[o]))throw O(".multirail.oob.v1.Telemetry.moves: object expected");t.moves[o]=p.multirail.oob.v1.TelemetryMove.fromObject(e.moves[o],
n+1)}}if(e.movesDropped!=null&&(typeof e.movesDropped=="object"?e.movesDropped.low||e.movesDropped.high:k(e.movesDropped)!==0)&&(i.Long?t.movesDropped=i.Long.fromValue(
e.movesDropped,!0):typeof e.movesDropped=="string"?t.movesDropped=S(e.movesDropped,10):typeof e.movesDropped=="number"?t.movesDropped=e.movesDropped:typeof e.movesDropped==
"object"&&(t.movesDropped=new i.LongBits(e.movesDropped.low>>>0,e.movesDropped.high>>>0).toNumber(!0))),e.counters){if(!i.isObject(e.counters))throw O(".multira\
il.oob.v1.Telemetry.counters: object expected");t.counters={};for(var c=s.keys(e.counters),o=0;o<c.length;++o)c[o]==="__proto__"&&i.makeProp(t.counters,c[o]),i.
Long?t.counters[c[o]]=i.Long.fromValue(e.counters[c[o]],!0):typeof e.counters[c[o]]=="string"?t.counters[c[o]]=S(e.counters[c[o]],10):typeof e.counters[c[o]]=="\
number"?t.counters[c[o]]=e.counters[c[o]]:typeof e.counters[c[o]]=="object"&&(t.counters[c[o]]=new i.LongBits(e.counters[c[o]].low>>>0,e.counters[c[o]].high>>>0).
toNumber(!0))}return t},l.toObject=function(e,n,t){if(n||(n={}),t===f&&(t=0),t>i.recursionLimit)throw d("max depth exceeded");var o={};if((n.arrays||n.defaults)&&
(o.rails=[],o.moves=[]),(n.objects||n.defaults)&&(o.counters={}),n.defaults){if(i.Long){var c=new i.Long(0,0,!0);o.atUs=n.longs===y?c.toString():n.longs===k?c.toNumber():
typeof w<"u"&&n.longs===w?c.toBigInt():c}else o.atUs=n.longs===y?"0":typeof w<"u"&&n.longs===w?w("0"):0;if(i.Long){var c=new i.Long(0,0,!0);o.aliveMs=n.longs===
y?c.toString():n.longs===k?c.toNumber():typeof w<"u"&&n.longs===w?c.toBigInt():c}else o.aliveMs=n.longs===y?"0":typeof w<"u"&&n.longs===w?w("0"):0;if(i.Long){var c=new i.
Long(0,0,!0);o.turns=n.longs===y?c.toString():n.longs===k?c.toNumber():typeof w<"u"&&n.longs===w?c.toBigInt():c}else o.turns=n.longs===y?"0":typeof w<"u"&&n.longs===
w?w("0"):0;if(i.Long){var c=new i.Long(0,0,!0);o.retainedBytes=n.longs===y?c.toString():n.longs===k?c.toNumber():typeof w<"u"&&n.longs===w?c.toBigInt():c}else o.
retainedBytes=n.longs===y?"0":typeof w<"u"&&n.longs===w?w("0"):0;if(o.takesFaults=!1,i.Long){var c=new i.Long(0,0,!0);o.movesDropped=n.longs===y?c.toString():n.
longs===k?c.toNumber():typeof w<"u"&&n.longs===w?c.toBigInt():c}else o.movesDropped=n.longs===y?"0":typeof w<"u"&&n.longs===w?w("0"):0}if(e.atUs!=null&&s.hasOwnProperty.
call(e,"atUs")&&(typeof w<"u"&&n.longs===w?o.atUs=typeof e.atUs=="number"?w(e.atUs):i.Long.fromBits(e.atUs.low>>>0,e.atUs.high>>>0,!0).toBigInt():typeof e.atUs==
"number"?o.atUs=n.longs===y?y(e.atUs):e.atUs:o.atUs=n.longs===y?i.Long.prototype.toString.call(e.atUs):n.longs===k?new i.LongBits(e.atUs.low>>>0,e.atUs.high>>>0).
toNumber(!0):e.atUs),e.aliveMs!=null&&s.hasOwnProperty.call(e,"aliveMs")&&(typeof w<"u"&&n.longs===w?o.aliveMs=typeof e.aliveMs=="number"?w(e.aliveMs):i.Long.fromBits(
e.aliveMs.low>>>0,e.aliveMs.high>>>0,!0).toBigInt():typeof e.aliveMs=="number"?o.aliveMs=n.longs===y?y(e.aliveMs):e.aliveMs:o.aliveMs=n.longs===y?i.Long.prototype.
toString.call(e.aliveMs):n.longs===k?new i.LongBits(e.aliveMs.low>>>0,e.aliveMs.high>>>0).toNumber(!0):e.aliveMs),e.turns!=null&&s.hasOwnProperty.call(e,"turns")&&
(typeof w<"u"&&n.longs===w?o.turns=typeof e.turns=="number"?w(e.turns):i.Long.fromBits(e.turns.low>>>0,e.turns.high>>>0,!0).toBigInt():typeof e.turns=="number"?
o.turns=n.longs===y?y(e.turns):e.turns:o.turns=n.longs===y?i.Long.prototype.toString.call(e.turns):n.longs===k?new i.LongBits(e.turns.low>>>0,e.turns.high>>>0).
toNumber(!0):e.turns),e.retainedBytes!=null&&s.hasOwnProperty.call(e,"retainedBytes")&&(typeof w<"u"&&n.longs===w?o.retainedBytes=typeof e.retainedBytes=="numbe\
r"?w(e.retainedBytes):i.Long.fromBits(e.retainedBytes.low>>>0,e.retainedBytes.high>>>0,!0).toBigInt():typeof e.retainedBytes=="number"?o.retainedBytes=n.longs===
y?y(e.retainedBytes):e.retainedBytes:o.retainedBytes=n.longs===y?i.Long.prototype.toString.call(e.retainedBytes):n.longs===k?new i.LongBits(e.retainedBytes.low>>>
0,e.retainedBytes.high>>>0).toNumber(!0):e.retainedBytes),e.takesFaults!=null&&s.hasOwnProperty.call(e,"takesFaults")&&(o.takesFaults=e.takesFaults),e.rails&&e.
rails.length){o.rails=P(e.rails.length);for(var u=0;u<e.rails.length;++u)o.rails[u]=p.multirail.oob.v1.TelemetryRail.toObject(e.rails[u],n,t+1)}if(e.moves&&e.moves.
length){o.moves=P(e.moves.length);for(var u=0;u<e.moves.length;++u)o.moves[u]=p.multirail.oob.v1.TelemetryMove.toObject(e.moves[u],n,t+1)}e.movesDropped!=null&&
s.hasOwnProperty.call(e,"movesDropped")&&(typeof w<"u"&&n.longs===w?o.movesDropped=typeof e.movesDropped=="number"?w(e.movesDropped):i.Long.fromBits(e.movesDropped.
low>>>0,e.movesDropped.high>>>0,!0).toBigInt():typeof e.movesDropped=="number"?o.movesDropped=n.longs===y?y(e.movesDropped):e.movesDropped:o.movesDropped=n.longs===
y?i.Long.prototype.toString.call(e.movesDropped):n.longs===k?new i.LongBits(e.movesDropped.low>>>0,e.movesDropped.high>>>0).toNumber(!0):e.movesDropped);var r;if(e.
counters&&(r=s.keys(e.counters)).length){o.counters={};for(var u=0;u<r.length;++u)r[u]==="__proto__"&&i.makeProp(o.counters,r[u]),typeof w<"u"&&n.longs===w?o.counters[r[u]]=
typeof e.counters[r[u]]=="number"?w(e.counters[r[u]]):i.Long.fromBits(e.counters[r[u]].low>>>0,e.counters[r[u]].high>>>0,!0).toBigInt():typeof e.counters[r[u]]==
"number"?o.counters[r[u]]=n.longs===y?y(e.counters[r[u]]):e.counters[r[u]]:o.counters[r[u]]=n.longs===y?i.Long.prototype.toString.call(e.counters[r[u]]):n.longs===
k?new i.LongBits(e.counters[r[u]].low>>>0,e.counters[r[u]].high>>>0).toNumber(!0):e.counters[r[u]]}return o},l.prototype.toJSON=function(){return l.toObject(this,
B.util.toJSONOptions)},l})(),L.TelemetryRail=(function(){const l=function(e){if(this.counters=[],e)for(var n=s.keys(e),t=0;t<n.length;++t)e[n[t]]!=null&&n[t]!==
"__proto__"&&(this[n[t]]=e[n[t]])};return l.prototype.peer=0,l.prototype.rail=0,l.prototype.state="",l.prototype.epoch=0,l.prototype.reason="",l.prototype.outstandingBytes=
i.Long?i.Long.fromBits(0,0,!0):0,l.prototype.windowBytes=i.Long?i.Long.fromBits(0,0,!0):0,l.prototype.measuredBytesPerSecond=i.Long?i.Long.fromBits(0,0,!0):0,l.
prototype.counters=i.emptyArray,l.prototype.name=null,l.encode=function(e,n,t){if(n||(n=$.create()),t===f&&(t=0),t>i.recursionLimit)throw d("max depth exceeded");
if(e.peer!=null&&s.hasOwnProperty.call(e,"peer")&&e.peer!==0&&n.uint32(8).uint32(e.peer),e.rail!=null&&s.hasOwnProperty.call(e,"rail")&&e.rail!==0&&n.uint32(16).
uint32(e.rail),e.state!=null&&s.hasOwnProperty.call(e,"state")&&e.state!==""&&n.uint32(26).string(e.state),e.epoch!=null&&s.hasOwnProperty.call(e,"epoch")&&e.epoch!==
0&&n.uint32(32).uint32(e.epoch),e.reason!=null&&s.hasOwnProperty.call(e,"reason")&&e.reason!==""&&n.uint32(42).string(e.reason),e.outstandingBytes!=null&&s.hasOwnProperty.
call(e,"outstandingBytes")&&(typeof e.outstandingBytes=="object"?e.outstandingBytes.low||e.outstandingBytes.high:e.outstandingBytes!==0)&&n.uint32(48).uint64(e.
outstandingBytes),e.windowBytes!=null&&s.hasOwnProperty.call(e,"windowBytes")&&(typeof e.windowBytes=="object"?e.windowBytes.low||e.windowBytes.high:e.windowBytes!==
0)&&n.uint32(56).uint64(e.windowBytes),e.measuredBytesPerSecond!=null&&s.hasOwnProperty.call(e,"measuredBytesPerSecond")&&(typeof e.measuredBytesPerSecond=="obj\
ect"?e.measuredBytesPerSecond.low||e.measuredBytesPerSecond.high:e.measuredBytesPerSecond!==0)&&n.uint32(64).uint64(e.measuredBytesPerSecond),e.counters!=null&&
e.counters.length&&n.uint32(74).uint64s(e.counters),e.name!=null&&s.hasOwnProperty.call(e,"name")&&p.multirail.oob.v1.TelemetryRailName.encode(e.name,n.uint32(82).
fork(),t+1).ldelim(),e.$unknowns!=null&&s.hasOwnProperty.call(e,"$unknowns"))for(var o=0;o<e.$unknowns.length;++o)n.raw(e.$unknowns[o]);return n},l.decode=function(e,n,t,o,c){
if(e instanceof v||(e=v.create(e)),o===f&&(o=0),o>v.recursionLimit)throw d("max depth exceeded");var u,r,a;if(n===f)u=e.len;else{if(u=e.pos+n,u>e.len)throw x("i\
ndex out of range");n=e.len,e.len=u}for(r=c||new p.multirail.oob.v1.TelemetryRail;e.pos<u;){var g=e.pos,h=e.tag();if(h===t){t=f;break}var b=h&7;switch(h>>>=3){case 1:{
if(b!==0)break;(a=e.uint32())?r.peer=a:delete r.peer;continue}case 2:{if(b!==0)break;(a=e.uint32())?r.rail=a:delete r.rail;continue}case 3:{if(b!==2)break;(a=e.
stringVerify()).length?r.state=a:delete r.state;continue}case 4:{if(b!==0)break;(a=e.uint32())?r.epoch=a:delete r.epoch;continue}case 5:{if(b!==2)break;(a=e.stringVerify()).
length?r.reason=a:delete r.reason;continue}case 6:{if(b!==0)break;(typeof(a=e.uint64())=="object"?a.low||a.high:a!==0)?r.outstandingBytes=a:delete r.outstandingBytes;
continue}case 7:{if(b!==0)break;(typeof(a=e.uint64())=="object"?a.low||a.high:a!==0)?r.windowBytes=a:delete r.windowBytes;continue}case 8:{if(b!==0)break;(typeof(a=
e.uint64())=="object"?a.low||a.high:a!==0)?r.measuredBytesPerSecond=a:delete r.measuredBytesPerSecond;continue}case 9:{if(b===2){r.counters&&r.counters.length||
(r.counters=[]),e.uint64s(r.counters);continue}if(b!==0)break;r.counters&&r.counters.length||(r.counters=[]),r.counters.push(e.uint64());continue}case 10:{if(b!==
2)break;r.name=p.multirail.oob.v1.TelemetryRailName.decode(e,e.size(),f,o+1,r.name);continue}}e.skipType(b,o,h),e.discardUnknown||(i.makeProp(r,"$unknowns",!1),
(r.$unknowns||(r.$unknowns=[])).push(e.raw(g,e.pos)))}if(n!==f){if(e.pos!==u)throw x("index out of range");e.len=n}if(t!==f)throw d("missing end group");return r},
l.fromObject=function(e,n){if(e instanceof p.multirail.oob.v1.TelemetryRail)return e;if(!i.isObject(e))throw O(".multirail.oob.v1.TelemetryRail: object expected");
if(n===f&&(n=0),n>i.recursionLimit)throw d("max depth exceeded");var t=new p.multirail.oob.v1.TelemetryRail;if(e.peer!=null&&k(e.peer)!==0&&(t.peer=e.peer>>>0),
e.rail!=null&&k(e.rail)!==0&&(t.rail=e.rail>>>0),e.state!=null&&(typeof e.state!="string"||e.state.length)&&(t.state=y(e.state)),e.epoch!=null&&k(e.epoch)!==0&&
(t.epoch=e.epoch>>>0),e.reason!=null&&(typeof e.reason!="string"||e.reason.length)&&(t.reason=y(e.reason)),e.outstandingBytes!=null&&(typeof e.outstandingBytes==
"object"?e.outstandingBytes.low||e.outstandingBytes.high:k(e.outstandingBytes)!==0)&&(i.Long?t.outstandingBytes=i.Long.fromValue(e.outstandingBytes,!0):typeof e.
outstandingBytes=="string"?t.outstandingBytes=S(e.outstandingBytes,10):typeof e.outstandingBytes=="number"?t.outstandingBytes=e.outstandingBytes:typeof e.outstandingBytes==
"object"&&(t.outstandingBytes=new i.LongBits(e.outstandingBytes.low>>>0,e.outstandingBytes.high>>>0).toNumber(!0))),e.windowBytes!=null&&(typeof e.windowBytes==
"object"?e.windowBytes.low||e.windowBytes.high:k(e.windowBytes)!==0)&&(i.Long?t.windowBytes=i.Long.fromValue(e.windowBytes,!0):typeof e.windowBytes=="string"?t.
windowBytes=S(e.windowBytes,10):typeof e.windowBytes=="number"?t.windowBytes=e.windowBytes:typeof e.windowBytes=="object"&&(t.windowBytes=new i.LongBits(e.windowBytes.
low>>>0,e.windowBytes.high>>>0).toNumber(!0))),e.measuredBytesPerSecond!=null&&(typeof e.measuredBytesPerSecond=="object"?e.measuredBytesPerSecond.low||e.measuredBytesPerSecond.
high:k(e.measuredBytesPerSecond)!==0)&&(i.Long?t.measuredBytesPerSecond=i.Long.fromValue(e.measuredBytesPerSecond,!0):typeof e.measuredBytesPerSecond=="string"?
t.measuredBytesPerSecond=S(e.measuredBytesPerSecond,10):typeof e.measuredBytesPerSecond=="number"?t.measuredBytesPerSecond=e.measuredBytesPerSecond:typeof e.measuredBytesPerSecond==
"object"&&(t.measuredBytesPerSecond=new i.LongBits(e.measuredBytesPerSecond.low>>>0,e.measuredBytesPerSecond.high>>>0).toNumber(!0))),e.counters){if(!P.isArray(
e.counters))throw O(".multirail.oob.v1.TelemetryRail.counters: array expected");t.counters=P(e.counters.length);for(var o=0;o<e.counters.length;++o)i.Long?t.counters[o]=
i.Long.fromValue(e.counters[o],!0):typeof e.counters[o]=="string"?t.counters[o]=S(e.counters[o],10):typeof e.counters[o]=="number"?t.counters[o]=e.counters[o]:typeof e.
counters[o]=="object"&&(t.counters[o]=new i.LongBits(e.counters[o].low>>>0,e.counters[o].high>>>0).toNumber(!0))}if(e.name!=null){if(!i.isObject(e.name))throw O(
".multirail.oob.v1.TelemetryRail.name: object expected");t.name=p.multirail.oob.v1.TelemetryRailName.fromObject(e.name,n+1)}return t},l.toObject=function(e,n,t){
if(n||(n={}),t===f&&(t=0),t>i.recursionLimit)throw d("max depth exceeded");var o={};if((n.arrays||n.defaults)&&(o.counters=[]),n.defaults){if(o.peer=0,o.rail=0,
o.state="",o.epoch=0,o.reason="",i.Long){var c=new i.Long(0,0,!0);o.outstandingBytes=n.longs===y?c.toString():n.longs===k?c.toNumber():typeof w<"u"&&n.longs===w?
c.toBigInt():c}else o.outstandingBytes=n.longs===y?"0":typeof w<"u"&&n.longs===w?w("0"):0;if(i.Long){var c=new i.Long(0,0,!0);o.windowBytes=n.longs===y?c.toString():
n.longs===k?c.toNumber():typeof w<"u"&&n.longs===w?c.toBigInt():c}else o.windowBytes=n.longs===y?"0":typeof w<"u"&&n.longs===w?w("0"):0;if(i.Long){var c=new i.Long(
0,0,!0);o.measuredBytesPerSecond=n.longs===y?c.toString():n.longs===k?c.toNumber():typeof w<"u"&&n.longs===w?c.toBigInt():c}else o.measuredBytesPerSecond=n.longs===
y?"0":typeof w<"u"&&n.longs===w?w("0"):0;o.name=null}if(e.peer!=null&&s.hasOwnProperty.call(e,"peer")&&(o.peer=e.peer),e.rail!=null&&s.hasOwnProperty.call(e,"ra\
il")&&(o.rail=e.rail),e.state!=null&&s.hasOwnProperty.call(e,"state")&&(o.state=e.state),e.epoch!=null&&s.hasOwnProperty.call(e,"epoch")&&(o.epoch=e.epoch),e.reason!=
null&&s.hasOwnProperty.call(e,"reason")&&(o.reason=e.reason),e.outstandingBytes!=null&&s.hasOwnProperty.call(e,"outstandingBytes")&&(typeof w<"u"&&n.longs===w?o.
outstandingBytes=typeof e.outstandingBytes=="number"?w(e.outstandingBytes):i.Long.fromBits(e.outstandingBytes.low>>>0,e.outstandingBytes.high>>>0,!0).toBigInt():
typeof e.outstandingBytes=="number"?o.outstandingBytes=n.longs===y?y(e.outstandingBytes):e.outstandingBytes:o.outstandingBytes=n.longs===y?i.Long.prototype.toString.
call(e.outstandingBytes):n.longs===k?new i.LongBits(e.outstandingBytes.low>>>0,e.outstandingBytes.high>>>0).toNumber(!0):e.outstandingBytes),e.windowBytes!=null&&
s.hasOwnProperty.call(e,"windowBytes")&&(typeof w<"u"&&n.longs===w?o.windowBytes=typeof e.windowBytes=="number"?w(e.windowBytes):i.Long.fromBits(e.windowBytes.low>>>
0,e.windowBytes.high>>>0,!0).toBigInt():typeof e.windowBytes=="number"?o.windowBytes=n.longs===y?y(e.windowBytes):e.windowBytes:o.windowBytes=n.longs===y?i.Long.
prototype.toString.call(e.windowBytes):n.longs===k?new i.LongBits(e.windowBytes.low>>>0,e.windowBytes.high>>>0).toNumber(!0):e.windowBytes),e.measuredBytesPerSecond!=
null&&s.hasOwnProperty.call(e,"measuredBytesPerSecond")&&(typeof w<"u"&&n.longs===w?o.measuredBytesPerSecond=typeof e.measuredBytesPerSecond=="number"?w(e.measuredBytesPerSecond):
i.Long.fromBits(e.measuredBytesPerSecond.low>>>0,e.measuredBytesPerSecond.high>>>0,!0).toBigInt():typeof e.measuredBytesPerSecond=="number"?o.measuredBytesPerSecond=
n.longs===y?y(e.measuredBytesPerSecond):e.measuredBytesPerSecond:o.measuredBytesPerSecond=n.longs===y?i.Long.prototype.toString.call(e.measuredBytesPerSecond):n.
longs===k?new i.LongBits(e.measuredBytesPerSecond.low>>>0,e.measuredBytesPerSecond.high>>>0).toNumber(!0):e.measuredBytesPerSecond),e.counters&&e.counters.length){
o.counters=P(e.counters.length);for(var u=0;u<e.counters.length;++u)typeof w<"u"&&n.longs===w?o.counters[u]=typeof e.counters[u]=="number"?w(e.counters[u]):i.Long.
fromBits(e.counters[u].low>>>0,e.counters[u].high>>>0,!0).toBigInt():typeof e.counters[u]=="number"?o.counters[u]=n.longs===y?y(e.counters[u]):e.counters[u]:o.counters[u]=
n.longs===y?i.Long.prototype.toString.call(e.counters[u]):n.longs===k?new i.LongBits(e.counters[u].low>>>0,e.counters[u].high>>>0).toNumber(!0):e.counters[u]}return e.
name!=null&&s.hasOwnProperty.call(e,"name")&&(o.name=p.multirail.oob.v1.TelemetryRailName.toObject(e.name,n,t+1)),o},l.prototype.toJSON=function(){return l.toObject(
this,B.util.toJSONOptions)},l})(),L.TelemetryRailName=(function(){const l=function(e){if(e)for(var n=s.keys(e),t=0;t<n.length;++t)e[n[t]]!=null&&n[t]!=="__proto\
__"&&(this[n[t]]=e[n[t]])};return l.prototype.key="",l.prototype.transport="",l.prototype.standby=!1,l.prototype.bandwidthBytesPerSecond=0,l.prototype.latencyUs=
0,l.encode=function(e,n,t){if(n||(n=$.create()),t===f&&(t=0),t>i.recursionLimit)throw d("max depth exceeded");if(e.key!=null&&s.hasOwnProperty.call(e,"key")&&e.
key!==""&&n.uint32(10).string(e.key),e.transport!=null&&s.hasOwnProperty.call(e,"transport")&&e.transport!==""&&n.uint32(18).string(e.transport),e.standby!=null&&
s.hasOwnProperty.call(e,"standby")&&e.standby!==!1&&n.uint32(24).bool(e.standby),e.bandwidthBytesPerSecond!=null&&s.hasOwnProperty.call(e,"bandwidthBytesPerSeco\
nd")&&!s.is(e.bandwidthBytesPerSecond,0)&&n.uint32(33).double(e.bandwidthBytesPerSecond),e.latencyUs!=null&&s.hasOwnProperty.call(e,"latencyUs")&&!s.is(e.latencyUs,
0)&&n.uint32(41).double(e.latencyUs),e.$unknowns!=null&&s.hasOwnProperty.call(e,"$unknowns"))for(var o=0;o<e.$unknowns.length;++o)n.raw(e.$unknowns[o]);return n},
l.decode=function(e,n,t,o,c){if(e instanceof v||(e=v.create(e)),o===f&&(o=0),o>v.recursionLimit)throw d("max depth exceeded");var u,r,a;if(n===f)u=e.len;else{if(u=
e.pos+n,u>e.len)throw x("index out of range");n=e.len,e.len=u}for(r=c||new p.multirail.oob.v1.TelemetryRailName;e.pos<u;){var g=e.pos,h=e.tag();if(h===t){t=f;break}
var b=h&7;switch(h>>>=3){case 1:{if(b!==2)break;(a=e.stringVerify()).length?r.key=a:delete r.key;continue}case 2:{if(b!==2)break;(a=e.stringVerify()).length?r.transport=
a:delete r.transport;continue}case 3:{if(b!==0)break;(a=e.bool())?r.standby=a:delete r.standby;continue}case 4:{if(b!==1)break;s.is(a=e.double(),0)?delete r.bandwidthBytesPerSecond:
r.bandwidthBytesPerSecond=a;continue}case 5:{if(b!==1)break;s.is(a=e.double(),0)?delete r.latencyUs:r.latencyUs=a;continue}}e.skipType(b,o,h),e.discardUnknown||
(i.makeProp(r,"$unknowns",!1),(r.$unknowns||(r.$unknowns=[])).push(e.raw(g,e.pos)))}if(n!==f){if(e.pos!==u)throw x("index out of range");e.len=n}if(t!==f)throw d(
"missing end group");return r},l.fromObject=function(e,n){if(e instanceof p.multirail.oob.v1.TelemetryRailName)return e;if(!i.isObject(e))throw O(".multirail.oo\
b.v1.TelemetryRailName: object expected");if(n===f&&(n=0),n>i.recursionLimit)throw d("max depth exceeded");var t=new p.multirail.oob.v1.TelemetryRailName;return e.
key!=null&&(typeof e.key!="string"||e.key.length)&&(t.key=y(e.key)),e.transport!=null&&(typeof e.transport!="string"||e.transport.length)&&(t.transport=y(e.transport)),
e.standby!=null&&e.standby&&(t.standby=m(e.standby)),e.bandwidthBytesPerSecond!=null&&(s.is(k(e.bandwidthBytesPerSecond),0)||(t.bandwidthBytesPerSecond=k(e.bandwidthBytesPerSecond))),
e.latencyUs!=null&&(s.is(k(e.latencyUs),0)||(t.latencyUs=k(e.latencyUs))),t},l.toObject=function(e,n,t){if(n||(n={}),t===f&&(t=0),t>i.recursionLimit)throw d("ma\
x depth exceeded");var o={};return n.defaults&&(o.key="",o.transport="",o.standby=!1,o.bandwidthBytesPerSecond=0,o.latencyUs=0),e.key!=null&&s.hasOwnProperty.call(
e,"key")&&(o.key=e.key),e.transport!=null&&s.hasOwnProperty.call(e,"transport")&&(o.transport=e.transport),e.standby!=null&&s.hasOwnProperty.call(e,"standby")&&
(o.standby=e.standby),e.bandwidthBytesPerSecond!=null&&s.hasOwnProperty.call(e,"bandwidthBytesPerSecond")&&(o.bandwidthBytesPerSecond=n.json&&!N(e.bandwidthBytesPerSecond)?
y(e.bandwidthBytesPerSecond):e.bandwidthBytesPerSecond),e.latencyUs!=null&&s.hasOwnProperty.call(e,"latencyUs")&&(o.latencyUs=n.json&&!N(e.latencyUs)?y(e.latencyUs):
e.latencyUs),o},l.prototype.toJSON=function(){return l.toObject(this,B.util.toJSONOptions)},l})(),L.TelemetryMove=(function(){const l=function(e){if(e)for(var n=s.
keys(e),t=0;t<n.length;++t)e[n[t]]!=null&&n[t]!=="__proto__"&&(this[n[t]]=e[n[t]])};return l.prototype.peer=0,l.prototype.rail=0,l.prototype.from="",l.prototype.
to="",l.prototype.reason="",l.prototype.atUs=i.Long?i.Long.fromBits(0,0,!0):0,l.encode=function(e,n,t){if(n||(n=$.create()),t===f&&(t=0),t>i.recursionLimit)throw d(
"max depth exceeded");if(e.peer!=null&&s.hasOwnProperty.call(e,"peer")&&e.peer!==0&&n.uint32(8).uint32(e.peer),e.rail!=null&&s.hasOwnProperty.call(e,"rail")&&e.
rail!==0&&n.uint32(16).uint32(e.rail),e.from!=null&&s.hasOwnProperty.call(e,"from")&&e.from!==""&&n.uint32(26).string(e.from),e.to!=null&&s.hasOwnProperty.call(
e,"to")&&e.to!==""&&n.uint32(34).string(e.to),e.reason!=null&&s.hasOwnProperty.call(e,"reason")&&e.reason!==""&&n.uint32(42).string(e.reason),e.atUs!=null&&s.hasOwnProperty.
call(e,"atUs")&&(typeof e.atUs=="object"?e.atUs.low||e.atUs.high:e.atUs!==0)&&n.uint32(48).uint64(e.atUs),e.$unknowns!=null&&s.hasOwnProperty.call(e,"$unknowns"))
for(var o=0;o<e.$unknowns.length;++o)n.raw(e.$unknowns[o]);return n},l.decode=function(e,n,t,o,c){if(e instanceof v||(e=v.create(e)),o===f&&(o=0),o>v.recursionLimit)
throw d("max depth exceeded");var u,r,a;if(n===f)u=e.len;else{if(u=e.pos+n,u>e.len)throw x("index out of range");n=e.len,e.len=u}for(r=c||new p.multirail.oob.v1.
TelemetryMove;e.pos<u;){var g=e.pos,h=e.tag();if(h===t){t=f;break}var b=h&7;switch(h>>>=3){case 1:{if(b!==0)break;(a=e.uint32())?r.peer=a:delete r.peer;continue}case 2:{
if(b!==0)break;(a=e.uint32())?r.rail=a:delete r.rail;continue}case 3:{if(b!==2)break;(a=e.stringVerify()).length?r.from=a:delete r.from;continue}case 4:{if(b!==
2)break;(a=e.stringVerify()).length?r.to=a:delete r.to;continue}case 5:{if(b!==2)break;(a=e.stringVerify()).length?r.reason=a:delete r.reason;continue}case 6:{if(b!==
0)break;(typeof(a=e.uint64())=="object"?a.low||a.high:a!==0)?r.atUs=a:delete r.atUs;continue}}e.skipType(b,o,h),e.discardUnknown||(i.makeProp(r,"$unknowns",!1),
(r.$unknowns||(r.$unknowns=[])).push(e.raw(g,e.pos)))}if(n!==f){if(e.pos!==u)throw x("index out of range");e.len=n}if(t!==f)throw d("missing end group");return r},
l.fromObject=function(e,n){if(e instanceof p.multirail.oob.v1.TelemetryMove)return e;if(!i.isObject(e))throw O(".multirail.oob.v1.TelemetryMove: object expected");
if(n===f&&(n=0),n>i.recursionLimit)throw d("max depth exceeded");var t=new p.multirail.oob.v1.TelemetryMove;return e.peer!=null&&k(e.peer)!==0&&(t.peer=e.peer>>>
0),e.rail!=null&&k(e.rail)!==0&&(t.rail=e.rail>>>0),e.from!=null&&(typeof e.from!="string"||e.from.length)&&(t.from=y(e.from)),e.to!=null&&(typeof e.to!="string"||
e.to.length)&&(t.to=y(e.to)),e.reason!=null&&(typeof e.reason!="string"||e.reason.length)&&(t.reason=y(e.reason)),e.atUs!=null&&(typeof e.atUs=="object"?e.atUs.
low||e.atUs.high:k(e.atUs)!==0)&&(i.Long?t.atUs=i.Long.fromValue(e.atUs,!0):typeof e.atUs=="string"?t.atUs=S(e.atUs,10):typeof e.atUs=="number"?t.atUs=e.atUs:typeof e.
atUs=="object"&&(t.atUs=new i.LongBits(e.atUs.low>>>0,e.atUs.high>>>0).toNumber(!0))),t},l.toObject=function(e,n,t){if(n||(n={}),t===f&&(t=0),t>i.recursionLimit)
throw d("max depth exceeded");var o={};if(n.defaults)if(o.peer=0,o.rail=0,o.from="",o.to="",o.reason="",i.Long){var c=new i.Long(0,0,!0);o.atUs=n.longs===y?c.toString():
n.longs===k?c.toNumber():typeof w<"u"&&n.longs===w?c.toBigInt():c}else o.atUs=n.longs===y?"0":typeof w<"u"&&n.longs===w?w("0"):0;return e.peer!=null&&s.hasOwnProperty.
call(e,"peer")&&(o.peer=e.peer),e.rail!=null&&s.hasOwnProperty.call(e,"rail")&&(o.rail=e.rail),e.from!=null&&s.hasOwnProperty.call(e,"from")&&(o.from=e.from),e.
to!=null&&s.hasOwnProperty.call(e,"to")&&(o.to=e.to),e.reason!=null&&s.hasOwnProperty.call(e,"reason")&&(o.reason=e.reason),e.atUs!=null&&s.hasOwnProperty.call(
e,"atUs")&&(typeof w<"u"&&n.longs===w?o.atUs=typeof e.atUs=="number"?w(e.atUs):i.Long.fromBits(e.atUs.low>>>0,e.atUs.high>>>0,!0).toBigInt():typeof e.atUs=="num\
ber"?o.atUs=n.longs===y?y(e.atUs):e.atUs:o.atUs=n.longs===y?i.Long.prototype.toString.call(e.atUs):n.longs===k?new i.LongBits(e.atUs.low>>>0,e.atUs.high>>>0).toNumber(
!0):e.atUs),o},l.prototype.toJSON=function(){return l.toObject(this,B.util.toJSONOptions)},l})(),L.RailFault=(function(){const l=function(e){if(e)for(var n=s.keys(
e),t=0;t<n.length;++t)e[n[t]]!=null&&n[t]!=="__proto__"&&(this[n[t]]=e[n[t]])};return l.prototype.action="",l.prototype.peer=0,l.prototype.rail=0,l.encode=function(e,n,t){
if(n||(n=$.create()),t===f&&(t=0),t>i.recursionLimit)throw d("max depth exceeded");if(e.action!=null&&s.hasOwnProperty.call(e,"action")&&e.action!==""&&n.uint32(
10).string(e.action),e.peer!=null&&s.hasOwnProperty.call(e,"peer")&&e.peer!==0&&n.uint32(16).uint32(e.peer),e.rail!=null&&s.hasOwnProperty.call(e,"rail")&&e.rail!==
0&&n.uint32(24).uint32(e.rail),e.$unknowns!=null&&s.hasOwnProperty.call(e,"$unknowns"))for(var o=0;o<e.$unknowns.length;++o)n.raw(e.$unknowns[o]);return n},l.decode=
function(e,n,t,o,c){if(e instanceof v||(e=v.create(e)),o===f&&(o=0),o>v.recursionLimit)throw d("max depth exceeded");var u,r,a;if(n===f)u=e.len;else{if(u=e.pos+
n,u>e.len)throw x("index out of range");n=e.len,e.len=u}for(r=c||new p.multirail.oob.v1.RailFault;e.pos<u;){var g=e.pos,h=e.tag();if(h===t){t=f;break}var b=h&7;
switch(h>>>=3){case 1:{if(b!==2)break;(a=e.stringVerify()).length?r.action=a:delete r.action;continue}case 2:{if(b!==0)break;(a=e.uint32())?r.peer=a:delete r.peer;
continue}case 3:{if(b!==0)break;(a=e.uint32())?r.rail=a:delete r.rail;continue}}e.skipType(b,o,h),e.discardUnknown||(i.makeProp(r,"$unknowns",!1),(r.$unknowns||
(r.$unknowns=[])).push(e.raw(g,e.pos)))}if(n!==f){if(e.pos!==u)throw x("index out of range");e.len=n}if(t!==f)throw d("missing end group");return r},l.fromObject=
function(e,n){if(e instanceof p.multirail.oob.v1.RailFault)return e;if(!i.isObject(e))throw O(".multirail.oob.v1.RailFault: object expected");if(n===f&&(n=0),n>
i.recursionLimit)throw d("max depth exceeded");var t=new p.multirail.oob.v1.RailFault;return e.action!=null&&(typeof e.action!="string"||e.action.length)&&(t.action=
y(e.action)),e.peer!=null&&k(e.peer)!==0&&(t.peer=e.peer>>>0),e.rail!=null&&k(e.rail)!==0&&(t.rail=e.rail>>>0),t},l.toObject=function(e,n,t){if(n||(n={}),t===f&&
(t=0),t>i.recursionLimit)throw d("max depth exceeded");var o={};return n.defaults&&(o.action="",o.peer=0,o.rail=0),e.action!=null&&s.hasOwnProperty.call(e,"acti\
on")&&(o.action=e.action),e.peer!=null&&s.hasOwnProperty.call(e,"peer")&&(o.peer=e.peer),e.rail!=null&&s.hasOwnProperty.call(e,"rail")&&(o.rail=e.rail),o},l.prototype.
toJSON=function(){return l.toObject(this,B.util.toJSONOptions)},l})(),L})(),M})(),_})();export{p as default,J as multirail};
