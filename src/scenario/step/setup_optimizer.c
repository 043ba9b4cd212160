/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario/step/setup_optimizer.h"

#include <string.h>

static void
set(LhFramework *framework, const char *key, const char *text, const char *option)
{
    g_autofree char *source = g_strdup_printf("the scenario's %s", option);
    const bool known = lh_framework_set(framework, key, text, source);

    g_assert(known);
}

/* The framework's word for type @name, which is fp32 or the activations'; NULL: it is another. */
static const char *
word_of(const char *name, LhDtype dtype)
{
    if (strcmp(name, "fp32") == 0)
        return "fp32";
    return strcmp(name, lh_dtype_names[dtype]) == 0 ? "activation" : NULL;
}

static bool
refuse_type(const LhScenario *s, const char *field, const char *name, LhDtype dtype,
            const char *also, GError **error)
{
    const char *activation = dtype == LH_DTYPE_FP32 ? NULL : lh_dtype_names[dtype];

    return lh_scenario_error(s, field, error,
                             "found \"%s\"; allowed in a step with %s activations: fp32%s%s%s",
                             name, lh_dtype_names[dtype], activation != NULL ? ", " : "",
                             activation != NULL ? activation : "", also);
}

static bool
set_params(const LhScenario *s, LhDtype dtype, LhFramework *framework, GError **error)
{
    if (s->main_params_dtype < 0)
        return true;
    if (dtype == LH_DTYPE_FP32)
        return lh_scenario_error(s, "main_params_dtype", error,
                                 "the weights are fp32 and need no copy; give --dtype bf16 or "
                                 "fp16, too");
    set(framework, "states.master", s->main_params_dtype == LH_MAIN_PARAMS_FP32 ? "yes" : "no",
        "main_params_dtype");
    return true;
}

/* Gradients are added up and reduced in the type in which the optimizer reads them. */
static bool
set_grads(const LhScenario *s, LhDtype dtype, LhFramework *framework, GError **error)
{
    static const char *const keys[] = { "states.gradient", "ddp.gradient_reduce",
                                        "fsdp.gradient_reduce" };
    const char *name = s->main_grads_dtype < 0 ? NULL : lh_dtype_names[s->main_grads_dtype];
    const char *word = name == NULL ? NULL : word_of(name, dtype);

    if (name != NULL && word == NULL)
        return refuse_type(s, "main_grads_dtype", name, dtype, "", error);
    for (gsize i = 0; name != NULL && i < G_N_ELEMENTS(keys); i++)
        set(framework, keys[i], word, "main_grads_dtype");
    return true;
}

static bool
set_moments(const LhScenario *s, LhDtype dtype, LhFramework *framework, GError **error)
{
    const char *name = s->exp_avg_dtype < 0 ? NULL : lh_exp_avg_names[s->exp_avg_dtype];
    const char *word = NULL;

    if (name != NULL)
        word = s->exp_avg_dtype == LH_EXP_AVG_8BIT ? name : word_of(name, dtype);
    if (name != NULL && word == NULL)
        return refuse_type(s, "exp_avg_dtype", name, dtype, ", 8bit", error);
    if (name != NULL)
        set(framework, "states.moments", word, "exp_avg_dtype");
    return true;
}

void
lh_setup_alone(LhFramework *f, uint32_t data_ranks)
{
    if (!lh_setup_is_alone(f, data_ranks))
        return;
    f->states_master = f->ddp_bucket_copies = false;
    f->states_moments = LH_STATE_ACTIVATION;
    f->states_gradient = f->ddp_gradient_reduce = LH_TYPE_ACTIVATION;
    f->states_shard = LH_SHARD_DDP;
}

bool
lh_setup_optimizer(const LhScenario *s, LhDtype dtype, LhFramework *framework, GError **error)
{
    return set_params(s, dtype, framework, error) && set_grads(s, dtype, framework, error) &&
           set_moments(s, dtype, framework, error);
}
