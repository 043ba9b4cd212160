/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Megatron-LM refuses is refused: modules together with a number of layers, and whole layers
 * with a method but no number, or a number but no method.
 */
#include "scenario/setup_recomputation.h"

bool
lh_setup_recomputation_allows(const LhScenario *s, LhCheckpoint checkpoint)
{
    return (s->checkpoint < 0 || s->checkpoint == (int)checkpoint) &&
           (s->recompute_modules == NULL || checkpoint == LH_CHECKPOINT_SELECTIVE) &&
           (s->recompute_method < 0 || checkpoint == LH_CHECKPOINT_LAYER);
}

static bool
take_modules(const LhScenario *s, LhCheckpoint *checkpoint, LhRecompute *recompute, GError **error)
{
    g_autoptr(GError) cause = NULL;

    if (s->recompute_modules == NULL)
        return true;
    if (s->checkpoint >= 0 && s->checkpoint != LH_CHECKPOINT_SELECTIVE)
        return lh_scenario_error(
            s, "recompute_modules", error,
            "it recomputes modules of each layer, which contradicts the policy "
            "%s of --checkpoint; leave one of them out, or give selective",
            lh_checkpoint_names[s->checkpoint]);
    if (!lh_recompute_parse(s->recompute_modules, &recompute->modules, &cause))
        return lh_scenario_error(s, "recompute_modules", error, "%s", cause->message);
    *checkpoint = LH_CHECKPOINT_SELECTIVE;
    return true;
}

static bool
take_layers(const LhScenario *s, LhCheckpoint checkpoint, LhRecompute *recompute, GError **error)
{
    const bool method = s->recompute_method >= 0, number = s->recompute_num_layers > 0;
    const char *given = method ? "recompute_method" : "recompute_num_layers";

    if (!method && !number)
        return true;
    if (!method || !number)
        return lh_scenario_error(s, given, error, "give %s, too",
                                 method ? "--recompute-num-layers" : "--recompute-method");
    if (checkpoint != LH_CHECKPOINT_LAYER)
        return lh_scenario_error(s, given, error,
                                 "it chooses layers that are recomputed whole: give --checkpoint "
                                 "layer%s",
                                 s->recompute_modules != NULL ? " in place of --recompute-modules"
                                                              : "");
    recompute->method = (LhRecomputeMethod)s->recompute_method;
    recompute->layers = (uint32_t)s->recompute_num_layers;
    return true;
}

bool
lh_setup_recomputation(const LhScenario *s, const LhFramework *framework, LhCheckpoint *checkpoint,
                       LhRecompute *recompute, GError **error)
{
    LhCheckpoint policy = s->checkpoint < 0 ? (LhCheckpoint)framework->states_checkpoint
                                            : (LhCheckpoint)s->checkpoint;
    LhRecompute taken = { 0 };

    if (!take_modules(s, &policy, &taken, error) || !take_layers(s, policy, &taken, error))
        return false;
    *checkpoint = policy;
    *recompute = taken;
    return true;
}
