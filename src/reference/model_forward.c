/* SPDX-License-Identifier: Apache-2.0 */
#include "reference/model_forward.h"

#include "reference/model_noise.h"
#include "reference/model_pass.h"

#include <glib.h>

/* The head has a row per token of the vocabulary, so logits are a product with its transpose. */
static double *
logits_of(LhModelReference *r, const double *xf, const LhModelRows *rows, unsigned threads)
{
    const LhModelTensor *w = lh_model_tensor(r, r->shape.tied ? LH_MODEL_EMBED : LH_MODEL_HEAD, 0);
    const uint64_t v = r->shape.vocabulary, h = r->shape.hidden;
    const LhMathProduct p = { rows->count, v, h, threads };
    g_autofree double *chosen = g_new(double, rows->count *h);
    double *logits = g_new0(double, rows->count *v);

    for (uint64_t i = 0; i < rows->count * h; i++)
        chosen[i] = xf[rows->rows[i / h] * h + i % h];
    lh_math_product_dx(&p, chosen, w->value, logits);
    lh_model_disturb(r, logits, rows->count, v);
    return logits;
}

LhModelForward *
lh_model_forward_new(LhModelReference *r, const uint32_t *tokens, const LhModelRows *rows,
                     unsigned threads)
{
    LhModelForward *forward = g_new0(LhModelForward, 1);
    g_autofree double *xf = NULL;

    forward->layers = r->shape.layers_count;
    forward->attention = g_new0(LhReference, forward->layers);
    xf = lh_model_reference_layers(r, tokens, threads, forward->attention);
    forward->logits = logits_of(r, xf, rows, threads);
    return forward;
}

void
lh_model_forward_free(LhModelForward *forward)
{
    if (forward == NULL)
        return;
    for (uint32_t i = 0; i < forward->layers; i++)
        lh_reference_clear(&forward->attention[i]);
    g_free(forward->attention);
    g_free(forward->logits);
    g_free(forward);
}
