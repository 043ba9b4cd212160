#include "run_tests.h"
#include "steps.h"
#include "verify/verify.h"
#include "verifying.h"
#include "share.h"
#include "program/cursor.h"
START_TEST(one)
{
    const TinyStep t = { .schedule="ring", .tensor=2,.data=3,.groups=2,.vocabulary=61,.shard=LH_SHARD_FSDP,.optimizer_offload=0.01,.overlap_copies=true,.dtype=LH_DTYPE_FP32,.behaviour={.clip=0.5}};
    g_autoptr(GError) e=NULL;
    g_autoptr(LhProgram) p = tiny_step(&t,&e);
    ck_assert_msg(p!=NULL,"%s",e?e->message:"");
    g_autoptr(LhVerdict) v = lh_verify(p);
    for (guint i=0;i<v->findings->len && i<6;i++) g_printerr("%s\n", ((LhFinding*)&g_array_index(v->findings, LhFinding, i))->message);
    LhCursor c; LhOpBuffer b={0}; lh_cursor_init(&c,p,0);
    while (lh_cursor_step(&c,&b)) for(uint32_t i=0;i<b.ops_count;i++){ const LhOp*o=&b.ops[i]; if(o->phase!=LH_PHASE_OPTIMIZER && !(o->kind==LH_OP_COMPUTE&&o->stream!=0)) continue; if(o->kind==LH_OP_COMPUTE){ g_printerr("%u s%u %s L%u first%d cnt%lu:",o->id,o->stream,lh_kernels[o->compute.kernel]->name,o->layer,o->compute.args.first,(unsigned long)o->compute.args.optimizer.count); for(int k=0;k<o->compute.regions_count;k++) g_printerr(" %s[%u+%u]",p->slots[o->compute.regions[k].slot].name,o->compute.regions[k].part,o->compute.regions[k].count); g_printerr(" after"); for(int k=0;k<o->after_count;k++) g_printerr(" %u",o->after[k]); g_printerr("\n");} else if(o->kind==LH_OP_COLLECTIVE||o->kind==LH_OP_SYNC) g_printerr("%u s%u kind %d %s\n",o->id,o->stream,o->kind,p->slots[o->collective.send[0].slot].name);}
}
END_TEST
LH_TEST_MAIN("y", one)
