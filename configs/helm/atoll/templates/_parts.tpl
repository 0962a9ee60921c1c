{{/*
The objects that both programs have. The argument of each template has:

  root      the chart's own context
  name      the name of the program and of its objects
  values    the values of the program
  config    its configuration, as YAML
  reloads   the keys of the configuration that the process reloads without a restart
  ports     the ports of its listeners, by name
  token     whether the pods get the token of their service account
*/}}

{{- define "atoll.configMap" -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "atoll.labels" . | nindent 4 }}
data:
  {{ .name }}.yaml: |
    {{- .config | nindent 4 }}
{{- end }}

{{- define "atoll.serviceAccount" -}}
{{- with .values.serviceAccount }}
{{- if .create }}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .name }}
  namespace: {{ $.root.Release.Namespace }}
  labels:
    {{- include "atoll.labels" $ | nindent 4 }}
  {{- with .annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- if not $.token }}
automountServiceAccountToken: false
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "atoll.podDisruptionBudget" -}}
{{- with .values.podDisruptionBudget }}
{{- if .enabled }}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $.name }}
  namespace: {{ $.root.Release.Namespace }}
  labels:
    {{- include "atoll.labels" $ | nindent 4 }}
spec:
  maxUnavailable: {{ .maxUnavailable }}
  selector:
    matchLabels:
      {{- include "atoll.selector" $.name | nindent 6 }}
  # A pod without a tunnel must not prevent a node from being drained.
  unhealthyPodEvictionPolicy: AlwaysAllow
{{- end }}
{{- end }}
{{- end }}

{{- define "atoll.deployment" -}}
{{- $values := .values -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "atoll.labels" . | nindent 4 }}
spec:
  replicas: {{ int $values.replicas }}
  selector:
    matchLabels:
      {{- include "atoll.selector" .name | nindent 6 }}
  strategy:
    type: RollingUpdate
    rollingUpdate:
      maxSurge: 1
      maxUnavailable: 0
  template:
    metadata:
      labels:
        {{- merge (include "atoll.selector" .name | fromYaml) $values.podLabels | toYaml | nindent 8 }}
      annotations:
        # A change of what the process does not reload starts new pods.
        {{- $config := fromYaml .config }}
        {{- range .reloads }}
        {{- $config = omit $config . }}
        {{- end }}
        checksum/config: {{ toYaml $config | sha256sum }}
        {{- with $values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      serviceAccountName: {{ $values.serviceAccount.name }}
      {{- if not .token }}
      automountServiceAccountToken: false
      {{- end }}
      # Longer than `drain` of the configuration.
      terminationGracePeriodSeconds: {{ int $values.terminationGracePeriodSeconds }}
      # The process does not use the environment variables for other Services.
      enableServiceLinks: false
      {{- with .root.Values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 6 }}
      {{- end }}
      {{- with $values.podSecurityContext }}
      securityContext:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- with $values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 6 }}
      {{- end }}
      {{- with $values.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.topologySpreadConstraints }}
      topologySpreadConstraints:
        {{- toYaml . | nindent 6 }}
      {{- end }}
      containers:
      - name: {{ .name }}
        image: {{ include "atoll.image" (dict "root" .root "image" $values.image) }}
        imagePullPolicy: {{ $values.image.pullPolicy }}
        args:
        - --config
        - /etc/atoll/{{ .name }}.yaml
        {{- with $values.args }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        {{- with $values.env }}
        env:
          {{- toYaml . | nindent 8 }}
        {{- end }}
        ports:
        {{- range $name, $port := .ports }}
        - name: {{ $name }}
          containerPort: {{ $port }}
        {{- end }}
        startupProbe:
          httpGet:
            path: /livez
            port: probes
          periodSeconds: 1
          failureThreshold: 30
        livenessProbe:
          httpGet:
            path: /livez
            port: probes
          periodSeconds: 10
          timeoutSeconds: 5
        # An agent is ready when a tunnel is up, so a rollout stops if a new agent gets no tunnel.
        readinessProbe:
          httpGet:
            path: /readyz
            port: probes
          periodSeconds: 5
          timeoutSeconds: 5
        {{- with $values.resources }}
        resources:
          {{- toYaml . | nindent 10 }}
        {{- end }}
        {{- with $values.securityContext }}
        securityContext:
          {{- toYaml . | nindent 10 }}
        {{- end }}
        volumeMounts:
        # The folder, never a `subPath`: only a folder is updated when its ConfigMap or Secret changes.
        - name: atoll
          mountPath: /etc/atoll
          readOnly: true
        {{- with $values.volumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      volumes:
      - name: atoll
        projected:
          defaultMode: 0440
          sources:
          - configMap:
              name: {{ .name }}
          {{- range $values.secrets }}
          - secret:
              name: {{ . }}
          {{- end }}
      {{- with $values.volumes }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
{{- end }}

{{- define "atoll.serviceMonitor" -}}
{{- with .values.serviceMonitor }}
{{- if .enabled }}
# A headless Service, because a ServiceMonitor selects Services.
apiVersion: v1
kind: Service
metadata:
  name: {{ $.name }}-metrics
  namespace: {{ $.root.Release.Namespace }}
  labels:
    {{- include "atoll.labels" $ | nindent 4 }}
spec:
  clusterIP: None
  # A process that is not ready has metrics that say why.
  publishNotReadyAddresses: true
  selector:
    {{- include "atoll.selector" $.name | nindent 4 }}
  ports:
  - name: metrics
    port: {{ $.ports.metrics }}
    targetPort: metrics
    protocol: TCP
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata:
  name: {{ $.name }}
  namespace: {{ $.root.Release.Namespace }}
  labels:
    {{- merge .labels (include "atoll.labels" $ | fromYaml) | toYaml | nindent 4 }}
spec:
  # The job has the name of the program, as configs/observability/alerts.yaml assumes.
  jobLabel: app.kubernetes.io/name
  # Of the Services with this label, only the one above has the port.
  selector:
    matchLabels:
      {{- include "atoll.selector" $.name | nindent 6 }}
  endpoints:
  - {{- merge (dict "port" "metrics") .endpoint | toYaml | nindent 4 }}
{{- end }}
{{- end }}
{{- end }}
