/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Megatron-LM refuses is refused: modules together with a number of layers, and whole layers
 * with a method but no number, or a number but no method.
 */
#include "scenario/step/setup_recomputation.h"

/* What the fields say. */
typedef struct {
    int checkpoint; /* LhCheckpoint; -1: not given */
    const char *modules;
    int method; /* LhRecomputeMethod; -1: not given */
    uint64_t layers;
} Given;

/* An option with another policy replaces all that a file says of recomputation, not a part of it.
 */
static Given
given_by(const LhScenario *s)
{
    const bool policy = lh_scenario_has_option(s, "checkpoint");
    const bool modules = lh_scenario_has_option(s, "recompute_modules");
    Given given = { s->checkpoint, s->recompute_modules, s->recompute_method,
                    s->recompute_num_layers };

    if (modules && !policy && s->checkpoint != LH_CHECKPOINT_SELECTIVE)
        given.checkpoint = -1;
    if (policy && !modules && s->checkpoint != LH_CHECKPOINT_SELECTIVE)
        given.modules = NULL;
    if (!modules && (!policy || s->checkpoint == LH_CHECKPOINT_LAYER))
        return given;
    if (!lh_scenario_has_option(s, "recompute_method"))
        given.method = -1;
    if (!lh_scenario_has_option(s, "recompute_num_layers"))
        given.layers = 0;
    return given;
}

bool
lh_setup_recomputation_allows(const LhScenario *scenario, LhCheckpoint checkpoint)
{
    const Given given = given_by(scenario);

    return (given.checkpoint < 0 || given.checkpoint == (int)checkpoint) &&
           (given.modules == NULL || checkpoint == LH_CHECKPOINT_SELECTIVE) &&
           (given.method < 0 || checkpoint == LH_CHECKPOINT_LAYER);
}

static bool
take_modules(const LhScenario *s, const Given *given, LhCheckpoint *checkpoint,
             LhRecompute *recompute, GError **error)
{
    g_autoptr(GError) cause = NULL;

    if (given->modules == NULL)
        return true;
    if (given->checkpoint >= 0 && given->checkpoint != LH_CHECKPOINT_SELECTIVE)
        return lh_scenario_error(
            s, "recompute_modules", error,
            "it recomputes modules of each layer, which contradicts the policy "
            "%s of --checkpoint; leave one of them out, or give selective",
            lh_checkpoint_names[given->checkpoint]);
    if (!lh_recompute_parse(given->modules, &recompute->modules, &cause))
        return lh_scenario_error(s, "recompute_modules", error, "%s", cause->message);
    *checkpoint = LH_CHECKPOINT_SELECTIVE;
    return true;
}

static bool
take_layers(const LhScenario *s, const Given *given, LhCheckpoint checkpoint,
            LhRecompute *recompute, GError **error)
{
    const bool method = given->method >= 0, number = given->layers > 0;
    const char *field = method ? "recompute_method" : "recompute_num_layers";

    if (!method && !number)
        return true;
    if (!method || !number)
        return lh_scenario_error(s, field, error, "give %s, too",
                                 method ? "--recompute-num-layers" : "--recompute-method");
    if (checkpoint != LH_CHECKPOINT_LAYER)
        return lh_scenario_error(
            s, field, error,
            "it chooses layers that are recomputed whole: give --checkpoint layer%s",
            given->modules != NULL ? " in place of --recompute-modules" : "");
    recompute->method = (LhRecomputeMethod)given->method;
    recompute->layers = (uint32_t)given->layers;
    return true;
}

bool
lh_setup_recomputation(const LhScenario *s, const LhFramework *framework, LhCheckpoint *checkpoint,
                       LhRecompute *recompute, GError **error)
{
    const Given given = given_by(s);
    LhCheckpoint policy = given.checkpoint < 0 ? (LhCheckpoint)framework->states_checkpoint
                                               : (LhCheckpoint)given.checkpoint;
    LhRecompute taken = { 0 };

    if (!take_modules(s, &given, &policy, &taken, error) ||
        !take_layers(s, &given, policy, &taken, error))
        return false;
    *checkpoint = policy;
    *recompute = taken;
    return true;
}
